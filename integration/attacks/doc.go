// Package attacks has hostile jobs attack the execution point that they run on,
// as it is deployed and with some of its defences switched off.
//
// Every attack runs in every setting of the pool's mode (settings.go). The table of
// attacks (table.go) alone says which of them must succeed: an attack gets through if,
// and only if, all the defences of one of its ways are off. A defence that a mode does
// not have counts as off there.
//
// So a setting may lack several defences at once and still tell them apart: an
// attack that got through because of another defence than its own would also get
// through in a setting where the table says that it must not.
//
// Defences in the pod are switched off by editing the pod, those in the code by
// building a variant of the program in which a few lines differ (defences.go);
// the code itself knows nothing of that. An ordinary test finds snippets that no
// longer match.
//
// docs/developer/threats.md is written from the same table.
package attacks
