// Package docs has no code: it is the folder of the pages, with a test that
// their links lead somewhere.
package docs
