// Package credentials gives a job the secrets of its user that it asks for: tokens,
// Kerberos tickets, X.509 proxies. They lie in the sandbox as the payload's files, are
// renewed while the job is there, and are removed with the sandbox.
package credentials
