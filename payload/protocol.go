package payload

const (
	// Protocol is the version of the protocol described in docs/developer/protocol.md.
	Protocol = 2
	// NonceEnv is the environment variable that carries the binding's nonce
	// into the payload container.
	NonceEnv = "POD_STARTER_NONCE"
	// SocketName is the wrapper's socket in its control directory.
	SocketName = "wrapper.sock"
	// MaxLine bounds a line of the protocol, in bytes without the newline. It
	// leaves room for the largest argument vector and environment execve(2)
	// takes by default (2 MiB) in their JSON form.
	MaxLine = 8 << 20
)

// OOMScoreAdj is the payload's initial oom_score_adj: the kernel kills the job before other
// processes of the container (condor_starter uses the same value).
const OOMScoreAdj = 800
