package harness

// DefaultsExecute are lines of an execution point's configuration that undo what the pool
// shortens: HTCondor's own intervals, and podstarter's, as a site has them that sets none.
const DefaultsExecute = `STARTER_INITIAL_UPDATE_INTERVAL = 8
STARTER_UPDATE_INTERVAL = 300
UPDATE_INTERVAL = 300
POD_STARTER_MAX_REST = 300
KILLING_TIMEOUT = 30
`

// DefaultsSubmit are the same for the submit side.
const DefaultsSubmit = `NEGOTIATOR_INTERVAL = 60
NEGOTIATOR_CYCLE_DELAY = 20
NEGOTIATOR_MIN_INTERVAL = 5
SCHEDD_INTERVAL = 300
SHADOW_QUEUE_UPDATE_INTERVAL = 900
SHADOW_CHECKPROXY_INTERVAL = 600
`
