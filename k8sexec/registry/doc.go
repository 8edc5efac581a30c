// Package registry asks registries for what nobody sees from inside a container: the entry
// point and the command of its image, which are in the image's configuration (OCI image
// specification, config.md), and to which digest a tag points.
//
//	tag ── HEAD manifest ──▶ digest ── GET manifest [of this platform] ── GET configuration ──▶ Command
//
// A job's user may send credentials for images that nobody else may pull. A [User] asks with these, and gives the
// layers, which the pilot copies into the container.
//
// Whatever a registry answers may be hostile: answers are bounded in bytes and time, and must
// have the digest by which they were asked for. Answers are kept in the private directory of the
// pilot, commands by digest for ever, so that one of many jobs asks.
package registry
