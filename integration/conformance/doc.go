// Package conformance runs the same cases under the stock starter and ours, in
// one pool, and compares all that can be seen of them: the event log, the history
// ads of schedd and startd, the files that came back, what the job saw, what
// tools said, and, coarsely, how long things took. What differs between any two
// runs of one job (times, process numbers, the name of the slot) is written as
// what it is; everything else must be equal, unless differences/ lists it with
// the name of a reason (reasons_table.go). docs/admin/differences.md is written
// from the reasons, docs/developer/differences-by-attribute.md from the lists.
//
// Jobs with an image are compared with a stock execution point that has Docker or
// Apptainer: [Case.Reference], which inDocker and inApptainer set. $(IMAGE_busybox) in
// a submit description is the pool's image of that name.
//
// Besides, endings/ says what must become of each case under each starter: two
// that fail alike are not enough.
//
// To add a case:
//
//  1. Put it into the table of its subject, cases_SUBJECT.go: a name, what it
//     shows, the commands of a submit description (the probe of
//     integration/images/probe is the executable unless they name another), files
//     of the submit directory, and the steps that are done to the job
//     (steps.go, processes.go): Ready(), Tool("condor_hold"),
//     Event(harness.EventHeld, 1), Kill("shadow", (*Run).Shadow, unix.SIGKILL).
//     A step that waits is timed from what was done last: it must end as soon as
//     under the stock starter, or after the time that .About(5*time.Second) says.
//     Wait for events, never for time. A case takes a few seconds.
//     One that takes longer, or shows by another way what others show, ends on
//     .onRequest(): each run has a part of these, in turn.
//  2. Configuration of execution points or submit side, and programs such as
//     hooks, go into the Setup of the subject. It is in force for all cases.
//  3. Run it: integration/.state/bin/pool up --stock --slots 4 (--stock-docker and
//     --stock-apptainer for the other references), then
//     go -C integration test -tags pool -count=1 ./conformance -case NAME
//     (-at-once 1 for one after the other; a failure prints what differs).
//  4. Run it with -record, and read what becomes of it in endings/SUBJECT: is it what
//     a user would expect?
//  5. Mend what differs, or list it in differences/SUBJECT.json with the name of a
//     reason; a new reason goes into reasons_table.go, with what a user notices,
//     why it is so and what to do. What comes or not by the clock under the stock
//     starter too goes into Fleeting. A listed difference that does not show in
//     each case that it names fails. A difference that shows only in some kind of pool
//     has a rule with "pools" (and "versions"): words of which all must fit, shared, unshared
//     or rootless, static or partitionable, one-slot or several-slots, as "rootless" or
//     "unshared partitionable". So may an entry of endings/, after the case's name: "held
//     with rootless". A case that needs jobs at the same time has several-slots in its Pools.
//  6. go -C integration test ./conformance -run TestDifferencesPage -update
//
// A run has those cases on request whose turn it is: a part that changes by the hour,
// or the one of the flag -turn. -v names first which; the others are neither run nor
// passed. When something changes that they are about:
//
//	go -C integration test -tags pool -count=1 -timeout 30m ./conformance -all -case SUBJECT/
package conformance
