package job

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
	"podstarter/condor/config"
)

// defaultResources are the resources of a slot whose ad does not list them
// (condor_utils/compat_classad_util.cpp:CopyMachineResources).
const defaultResources = "CPUs, Disk, Memory"

// publishResources sets which of the machine's resources, such as GPUs, the job
// was assigned.
func publishResources(env *Env, k Knobs, machine *classads.Ad) error {
	var problems *multierror.Error
	list, err := machine.GetString("MachineResources")
	if err != nil {
		return nil
	}
	gpus := false
	for _, tag := range config.Split(list) {
		gpus = gpus || strings.EqualFold(tag, "GPUs")
		attr := "Assigned" + tag
		prototypes, _ := k.Lookup("ENVIRONMENT_FOR_" + attr)
		assigned, err := machine.GetString(attr)
		if err != nil {
			if prototypes == "" || !machine.Has(tag) {
				continue
			}
			// None is assigned, and a program must not use any that it finds.
			assigned, _ = k.Lookup("ENVIRONMENT_VALUE_FOR_UN" + attr)
		}
		if err := assignedVariables(env, prototypes, assigned); err != nil {
			problems = multierror.Append(problems, fmt.Errorf("knob ENVIRONMENT_FOR_%s: %w", attr, err))
		}
		env.Set("_CONDOR_"+attr, assigned)
	}
	if gpus {
		auto, err := k.Bool("AUTO_SET_NVIDIA_VISIBLE_DEVICES", true)
		if err != nil {
			problems = multierror.Append(problems, err)
		}
		if auto {
			visibleGPUs(env, machine)
		}
	}
	return problems.ErrorOrNil()
}

// assignedVariables sets the variables of a knob ENVIRONMENT_FOR_Assigned...: a
// list of NAME=/pattern/replacement/, where any character can take the place of
// the slashes and $0 to $9 are groups of the pattern; the match is replaced in
// each assigned id. A final NAME without a pattern gets the ids as they are. The
// two variables in which CUDA and OpenCL want bare numbers are reduced to digits
// and commas unless a pattern is given
// (condor_starter.V6.1/starter.cpp:SetEnvironmentForAssignedRes). The stock
// starter of 25.14 loses the end of the match on 64 bit machines and replaces
// nothing; this function does what the manual says.
func assignedVariables(env *Env, prototypes, assigned string) error {
	rest := strings.TrimLeft(prototypes, " \t\r\n")
	for rest != "" {
		name, spec, ok := strings.Cut(rest, "=")
		if !ok {
			if rest == "CUDA_VISIBLE_DEVICES" || rest == "GPU_DEVICE_ORDINAL" {
				assigned = digitsAndCommas(assigned)
			}
			env.Set(strings.TrimSpace(rest), assigned)
			return nil
		}
		name = strings.TrimSpace(name)
		spec = strings.TrimLeft(spec, " \t\r\n")
		if spec == "" {
			return fmt.Errorf("%s has no /pattern/replacement/", excerpt(name))
		}
		parts := strings.SplitN(spec[1:], spec[:1], 3)
		if len(parts) < 3 {
			return fmt.Errorf("%s lacks the %q that ends pattern or replacement", excerpt(name), spec[:1])
		}
		if parts[0] == "" && name == "CUDA_VISIBLE_DEVICES" {
			env.Set(name, digitsAndCommas(assigned))
		} else {
			re, err := regexp.Compile(parts[0])
			if err != nil {
				return fmt.Errorf("pattern of %s: %w", excerpt(name), err)
			}
			ids := config.Split(assigned)
			for i, id := range ids {
				ids[i] = replaceFirst(re, id, parts[1])
			}
			env.Set(name, strings.Join(ids, ","))
		}
		rest = strings.TrimLeft(strings.TrimPrefix(parts[2], ","), " \t\r\n")
	}
	return nil
}

func digitsAndCommas(s string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || r == ',' {
			return r
		}
		return -1
	}, s)
}

// replaceFirst replaces the first match; $0 to $9 in the replacement are the
// pattern's groups, empty for a missing group.
func replaceFirst(re *regexp.Regexp, s, replacement string) string {
	m := re.FindStringSubmatchIndex(s)
	if m == nil {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:m[0]])
	for i := 0; i < len(replacement); i++ {
		c := replacement[i]
		if c != '$' || i+1 == len(replacement) || replacement[i+1] < '0' || replacement[i+1] > '9' {
			b.WriteByte(c)
			continue
		}
		i++
		if g := 2 * int(replacement[i]-'0'); g < len(m) && m[g] >= 0 {
			b.WriteString(s[m[g]:m[g+1]])
		}
	}
	b.WriteString(s[m[1]:])
	return b.String()
}

// visibleGPUs sets the variables that tell NVIDIA's container runtime and CUDA
// the job's GPUs. The runtime wants GPU-<uuid>, and for a slice of a GPU the id
// as it is, MIG-<uuid>.
func visibleGPUs(env *Env, machine *classads.Ad) {
	list, ok := gpuList(machine)
	if !ok || list == "" {
		env.Set("NVIDIA_VISIBLE_DEVICES", "none")
		return
	}
	env.Set("NVIDIA_VISIBLE_DEVICES", list)
	env.Set("CUDA_VISIBLE_DEVICES", list)
}

func gpuList(machine *classads.Ad) (string, bool) {
	devices, err := machine.GetList("AvailableGPUs")
	if err != nil {
		return "", false
	}
	prefix := "GPU-"
	var ids []string
	for i, device := range devices {
		ad, ok := device.Ad()
		if !ok {
			return "", false
		}
		if i == 0 && strings.HasPrefix(ad.StringOr("id", ""), "MIG-") {
			prefix = ""
		}
		uuid, err := ad.GetString("DeviceUuid")
		if err != nil {
			return "", false
		}
		ids = append(ids, prefix+uuid)
	}
	return strings.Join(ids, ","), true
}
