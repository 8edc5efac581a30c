// Package payloadrun runs the job's programs in the payload container: what is to run
// there and how ([Job]), the container itself ([Container]), and standard files that are
// streamed through the shadow ([Streams]) or tried before the job begins ([Job.Rehearse]).
package payloadrun
