// Package spares tests payload containers that are made ahead. Its pool: up --slots 2 --spares 2.
package spares
