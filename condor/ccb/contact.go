package ccb

import (
	"fmt"
	"strings"

	"podstarter/internal/cedar"
)

// A Contact is a broker, and the id that a daemon has there.
type Contact struct {
	Broker cedar.Sinful
	ID     string
	// Route are the ids by which that broker reaches the daemon through others, separated by
	// blanks; empty if the daemon is its own.
	Route string
}

// maxContacts is how many brokers of one daemon are asked. Each may take its time.
const maxContacts = 16

// ParseContacts reads the parameter CCBID of an address: contacts as host:port?params#id,
// separated by blanks, with several ids for a broker behind others (ccb_client.cpp:
// SplitCCBContact, establishStreamingPipe).
func ParseContacts(text string) ([]Contact, error) {
	var all []Contact
	for item := range strings.FieldsSeq(text) {
		if len(all) == maxContacts {
			break
		}
		address, ids, found := strings.Cut(item, "#")
		if !found {
			return nil, fmt.Errorf("the broker %.200q has no id of the daemon", item)
		}
		broker, err := cedar.ParseSinful(address)
		if err != nil {
			return nil, fmt.Errorf("the broker of the daemon: %w", err)
		}
		id, route, _ := strings.Cut(ids, "#")
		for one := range strings.SplitSeq(ids, "#") {
			if one == "" || strings.Trim(one, "0123456789") != "" {
				return nil, fmt.Errorf("the id %.80q at the broker %s is not a number", one, place(broker))
			}
		}
		all = append(all, Contact{Broker: broker, ID: id, Route: strings.ReplaceAll(route, "#", " ")})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the daemon names no broker")
	}
	return all, nil
}

// ids are all ids of a contact, as a broker without routes reads them.
func (c Contact) ids() string {
	if c.Route == "" {
		return c.ID
	}
	return c.ID + "#" + strings.ReplaceAll(c.Route, " ", "#")
}

// String names the broker and the id.
func (c Contact) String() string { return "broker " + place(c.Broker) + ", id " + c.ids() }

// place is the part of an address that readers know.
func place(s cedar.Sinful) string { return s.DialAddress() }
