// Package cppnames finds which configuration knobs and ClassAd attributes C++ code reads, without a compiler and without the
// headers of the system. It splits files into tokens, follows constants, variables, format strings and functions that pass a
// name on, and says so where a name remains unknown.
package cppnames
