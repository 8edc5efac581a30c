// Package submitside deals with the submit side beside the phases of a job: it keeps
// the connection to the shadow, or waits for one that comes back; it says where files
// are transferred; it tells shadow and startd how the job fares, and asks the shadow
// for guidance.
package submitside
