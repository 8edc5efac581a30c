package java

import (
	"bytes"
	"fmt"

	"podstarter/classads"
)

// Probe is the command that prints a JVM's properties (condor_starter.V6.1/java_detect.cpp).
func Probe(k Knobs) (program string, args []string, err error) {
	program, args, err = vm(k, nil)
	return program, append(args, "CondorJavaInfo", "old"), err
}

// properties are those that a slot's ad has (condor_starter.V6.1/starter_v61_main.cpp:printClassAd).
var properties = []string{"JavaVendor", "JavaVersion", "JavaSpecificationVersion"}

// MaxProperties bounds what is read of a JVM's properties.
const MaxProperties = 256 << 10

// Publish adds what the command printed to the slot's ad, with the promise that jobs of the java universe run. The error
// says what is missing.
func Publish(ad *classads.Ad, printed []byte) error {
	found := classads.NewAd()
	for line := range bytes.Lines(printed[:min(len(printed), MaxProperties)]) {
		name, _, ok := bytes.Cut(line, []byte(" = "))
		if !ok {
			continue
		}
		for _, wanted := range properties {
			if string(name) != wanted {
				continue
			}
			one, err := classads.ParseOld(string(line))
			if err != nil {
				return fmt.Errorf("read what CondorJavaInfo printed of %s: %w", wanted, err)
			}
			if text, err := one.GetString(wanted); err == nil {
				found.SetString(wanted, text)
			}
		}
	}
	if found.Len() == 0 {
		return fmt.Errorf("CondorJavaInfo printed neither %s nor %s", properties[0], properties[1])
	}
	ad.Update(found)
	ad.SetBool("HasJava", true)
	return nil
}
