package cluster

// PilotAudit makes the API server log pilots' requests, and nothing else: one line when it answers, and for a watch
// one more when that ends.
const PilotAudit = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts:` + Namespace + `"]
  - level: None
`

// FullAudit makes it log everybody's requests in the same way.
const FullAudit = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
`

// AuditLog is the path of the API server's audit log.
func (n Node) AuditLog() string { return n.State.Path("log", "audit.log") }
