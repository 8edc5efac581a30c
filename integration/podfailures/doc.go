// Package podfailures runs a job into every failure that is known between a pilot and its payload container, on a real
// cluster, and checks what becomes of it: who is blamed, which codes the job gets, what it is told, and how soon.
//
// Most failures are made for real: a registry that misbehaves, a pod that is deleted, a process that is killed. What a
// healthy node does not do on request is put into the mouth of the API server: the execution points of these tests reach
// it through a [Proxy] of this package. docs/operator/failures.md is written from the table here and from what was measured.
package podfailures
