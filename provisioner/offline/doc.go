// Package offline decides which pods are made for the matches of offline ads.
//
// An offline ad says that there could be a slot. The negotiator matches jobs with
// it by its own fair share, notes the match in the ad, and gives no job a claim
// (HTCondor src/condor_negotiator.V6/matchmaker.cpp:RegisterAttemptedOfflineMatch).
// Each ad has the name of one unit, and each unit the name of its ads, so that what
// was begun can be gone on with by whoever reads both lists:
//
//	spare    there is no such unit; if a job matches, it is made
//	coming   the unit is on its way; jobs that wait for it match the ad again in
//	         each cycle, in place of another one
//	taken    the unit has reported, or is gone, or may not be made
//
// So the number of ads that match is the number of pods that are wanted, however
// often the negotiator finds the same jobs, and a unit whose ads match no longer is
// not wanted any more.
//
// Decide is a pure function, as decision.Decide is.
package offline
