package corev1

import "encoding/json"

// PodSecurityContext holds for all containers of a pod.
type PodSecurityContext struct {
	RunAsUser          *int64          `json:"runAsUser,omitempty"`
	RunAsGroup         *int64          `json:"runAsGroup,omitempty"`
	RunAsNonRoot       *bool           `json:"runAsNonRoot,omitempty"`
	SupplementalGroups []int64         `json:"supplementalGroups,omitempty"`
	FSGroup            *int64          `json:"fsGroup,omitempty"`
	SeccompProfile     *SeccompProfile `json:"seccompProfile,omitempty"`
}

// SecurityContext holds for one container. It has all fields of core/v1: those of two
// containers are compared. No more is done with what is raw here.
type SecurityContext struct {
	Capabilities             *Capabilities   `json:"capabilities,omitempty"`
	Privileged               *bool           `json:"privileged,omitempty"`
	SELinuxOptions           json.RawMessage `json:"seLinuxOptions,omitempty"`
	WindowsOptions           json.RawMessage `json:"windowsOptions,omitempty"`
	RunAsUser                *int64          `json:"runAsUser,omitempty"`
	RunAsGroup               *int64          `json:"runAsGroup,omitempty"`
	RunAsNonRoot             *bool           `json:"runAsNonRoot,omitempty"`
	ReadOnlyRootFilesystem   *bool           `json:"readOnlyRootFilesystem,omitempty"`
	AllowPrivilegeEscalation *bool           `json:"allowPrivilegeEscalation,omitempty"`
	ProcMount                *string         `json:"procMount,omitempty"`
	SeccompProfile           *SeccompProfile `json:"seccompProfile,omitempty"`
	AppArmorProfile          json.RawMessage `json:"appArmorProfile,omitempty"`
}

// SeccompProfile is which system calls the container may make. It has all fields of core/v1.
type SeccompProfile struct {
	Type             SeccompProfileType `json:"type"`
	LocalhostProfile *string            `json:"localhostProfile,omitempty"`
}

// SeccompProfileType is where the profile comes from.
type SeccompProfileType string

// SeccompProfileTypeRuntimeDefault is the container runtime's own profile.
const SeccompProfileTypeRuntimeDefault SeccompProfileType = "RuntimeDefault"

// Capabilities are added to those that the container runtime gives, or taken away. It has all
// fields of core/v1.
type Capabilities struct {
	Add  []Capability `json:"add,omitempty"`
	Drop []Capability `json:"drop,omitempty"`
}

// Capability is the name of one, such as SYS_ADMIN, or ALL.
type Capability string
