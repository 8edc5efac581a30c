package main

import "golang.org/x/sys/unix"

// auditArch is the architecture in struct seccomp_data.
const auditArch = unix.AUDIT_ARCH_X86_64
