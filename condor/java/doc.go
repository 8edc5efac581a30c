// Package java knows jobs of HTCondor's java universe: the command line of their virtual machine (JVM), what is found out
// about a machine's Java, and how the end of a JVM is read. It starts nothing itself.
//
// HTCondor has two classes for this. CondorJavaInfo prints the properties of a JVM. CondorJavaWrapper runs the job's main
// class and leaves two files, by which one tells the program's end from that of a JVM that does not work.
package java
