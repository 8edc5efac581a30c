// Package manyslots tests a pod with many slots: what all of them do at once, and what happens
// to all of them at once. Its pool: up --slots 32.
package manyslots
