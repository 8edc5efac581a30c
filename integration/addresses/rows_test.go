//go:build pool

package addresses

// Addresses as the tests write them; see shape.
const (
	sharedBoth = "4?addrs=4+6&alias&sock"
	sharedOne  = "4?addrs=4&alias&sock"
	sharedSix  = "6?addrs=6&alias&sock"
	sharedP    = "p?addrs=p&alias&sock"
	ownBoth    = "4?addrs=4+6&alias"
)

// Settings of execution points, and of tools.
const (
	behindBroker = "CCB_ADDRESS = $(COLLECTOR_HOST)\nTCP_FORWARDING_HOST = 192.0.2.98\nPRIVATE_NETWORK_INTERFACE = 10.77.0.*"
	privateToo   = "USE_SHARED_PORT = False\nPRIVATE_NETWORK_NAME = inside\nPRIVATE_NETWORK_INTERFACE = 10.77.0.*"
	onlySix      = "_CONDOR_ENABLE_IPV4=False _CONDOR_PRIVATE_NETWORK_NAME=no _CONDOR_PRIVATE_NETWORK_INTERFACE="
)

var rows = []row{
	// Which address of a shadow is called. HTCondor's tools set IPV4_ADDRESS and IPV6_ADDRESS to what they find.
	{name: "defaults", at: "both", has: "46p", from: "4"},
	{name: "prefer IPv6", at: "both", has: "46p", knobs: "PREFER_OUTBOUND_IPV4 = False", from: "6"},
	{name: "the shadow's order", at: "both", has: "46p", knobs: "PREFER_OUTBOUND_IPV4 = False\nIGNORE_TARGET_PROTOCOL_PREFERENCE = False", from: "4"},
	{name: "the shadow's order, IPv6 first", at: "sixfirst", has: "46p", knobs: "IGNORE_TARGET_PROTOCOL_PREFERENCE = False", from: "6"},
	{name: "not the shadow's order", at: "sixfirst", has: "46p", knobs: "IGNORE_TARGET_PROTOCOL_PREFERENCE = True", from: "4"},
	{name: "without IPv4", at: "both", has: "46p", knobs: "ENABLE_IPV4 = False", from: "6", told: sharedSix, visited: "6"},
	{name: "without IPv6", at: "both", has: "46p", knobs: "ENABLE_IPV6 = False\nPREFER_OUTBOUND_IPV4 = False", from: "4", told: sharedOne},
	{name: "IPV4_ADDRESS, no IPV6_ADDRESS", at: "both", has: "4p", knobs: "PREFER_OUTBOUND_IPV4 = False", from: "4", told: sharedOne},
	{name: "IPV6_ADDRESS, no IPV4_ADDRESS", at: "both", has: "6", from: "6", told: sharedSix, visited: "6"},
	{name: "in the private network", at: "both", has: "46p", knobs: "PRIVATE_NETWORK_NAME = inside", from: "p"},
	{name: "in another private network", at: "both", has: "46p", knobs: "PRIVATE_NETWORK_NAME = elsewhere", from: "4"},
	{name: "a public address before a private one", at: "mixed", has: "46p", from: "6"},
	{name: "a private address if there is no other", at: "mixed", has: "46p", knobs: "ENABLE_IPV6 = False", from: "p", told: sharedOne},
	{name: "a shadow that has only IPv6", at: "six", has: "46p", from: "6", visited: "6"},
	// From which address it is called.
	{name: "another interface", at: "both", has: "46p", knobs: "NETWORK_INTERFACE = 10.77.0.*", from: "4", told: sharedP, visited: "p"},
	{name: "bound to another interface", at: "both", has: "46p", knobs: "NETWORK_INTERFACE = 10.77.0.*\nBIND_ALL_INTERFACES = False", from: "p", told: sharedP, visited: "p"},
	{name: "bound to both protocols", at: "six", has: "46p", knobs: "BIND_ALL_INTERFACES = False", from: "6", visited: "6"},
	// Which address the starter tells.
	{name: "a tool that has only IPv6", at: "both", has: "46p", from: "4", visit: onlySix, visited: "6"},
	{name: "another file of the shared port", at: "both", has: "46p", knobs: "SHARED_PORT_DAEMON_AD_FILE = $(RUN)/port", from: "4"},
	{name: "a shared port behind a broker", at: "both", has: "46p", knobs: "CCB_ADDRESS = $(COLLECTOR_HOST)", from: "4", told: "4?CCBID&PrivNet&addrs=4+6&alias&sock", visited: "broker"},
	{name: "a port of its own", at: "both", has: "46p", knobs: "USE_SHARED_PORT = False", from: "4", told: ownBoth},
	{name: "a port of its own, and a tool that has only IPv6", at: "both", has: "46p", knobs: "USE_SHARED_PORT = False", from: "4", told: ownBoth, visit: onlySix, visited: "6"},
	{name: "a port of its own, and a shadow that has only IPv6", at: "six", has: "46p", knobs: "USE_SHARED_PORT = False", from: "6", told: ownBoth, visited: "6"},
	{name: "a port of its own, at one interface", at: "six", has: "46p", knobs: "USE_SHARED_PORT = False\nBIND_ALL_INTERFACES = False", from: "6", told: ownBoth, visited: "6"},
	{name: "a port of its own in the private network", at: "both", has: "46p", knobs: privateToo, from: "p", told: "p?alias", visited: "p"},
	{name: "a port of its own in a private network, from outside", at: "sixfirst", has: "46p", knobs: privateToo, from: "4",
		told: "4?PrivAddr=(p)&PrivNet=inside&addrs=4+6&alias"},
	{name: "a port of its own, IPv6 first", at: "both", has: "46p", knobs: "USE_SHARED_PORT = False\nADVERTISE_IPV4_FIRST = False", from: "4", told: "4?addrs=6+4&alias"},
	{name: "a port of its own, by another name", at: "both", has: "46p", knobs: "USE_SHARED_PORT = False\nHOST_ALIAS = other.example.net", from: "4", told: "4?addrs=4+6&alias=other.example.net"},
	{name: "a port of its own behind another machine", at: "six", has: "46p", knobs: "USE_SHARED_PORT = False\nTCP_FORWARDING_HOST = 192.0.2.98", from: "6", told: "other?addrs=other+6&alias", visited: "6"},
	// Ours takes the port that the startd hands down, and never opens another one.
	{name: "starters without the shared port", at: "both", has: "46p", knobs: "STARTER_USE_SHARED_PORT = False", from: "4", told: ownBoth, ours: difference{told: sharedBoth}},
	{name: "startds without the shared port", at: "both", has: "46p", knobs: "STARTD_USE_SHARED_PORT = False", from: "4", told: sharedBoth, ours: difference{told: ownBoth}},
	// Ours registers at no broker itself. Its shared port does.
	{name: "a port of its own behind a broker", at: "both", has: "46p", knobs: "USE_SHARED_PORT = False\nCCB_ADDRESS = $(COLLECTOR_HOST)", from: "4",
		told: "4?CCBID&PrivNet&addrs=4+6&alias", visited: "broker", ours: difference{told: ownBoth, visited: "4"}},
	// Ours opens its connections itself.
	{name: "calls through a broker", at: "both", has: "46p", knobs: "STARTER.OUTBOUND_CCB_ADDRESS = <$(COLLECTOR_HOST)>", from: "broker", ours: difference{from: "4"}},
	{name: "an access point behind a broker", at: "broker", has: "46p", from: "4"},
	{name: "an access point behind a broker, by IPv6", at: "broker", has: "6", from: "6", told: sharedSix, visited: "6"},
	{name: "an access point behind a broker, in its private network", at: "broker", has: "46p", knobs: "PRIVATE_NETWORK_NAME = broker", from: "p"},
	{name: "an access point behind a broker, and a port of its own", at: "broker", has: "46p", knobs: "USE_SHARED_PORT = False", from: "4", told: ownBoth},
	// The broker passes on what both say.
	{name: "both behind a broker", at: "broker", has: "46p", knobs: behindBroker, from: "broker", visit: "-"},
	{name: "both behind a broker that passes nothing on", at: "broker", has: "46p", knobs: behindBroker + "\nSTARTER.CCB_CLIENT_STREAMING = False", lost: true},
}
