ClusterId = 6
Id = 1
JobCount = 1
JobIds = "6.1"
JobStatus = 1
JobUniverse = 5
ProcId = 1
Rank = 0.0
RequestCpus = 2
RequestDisk = 100
RequestMemory = 60000
Requirements = (TARGET.HasCVMFS) && (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && (TARGET.HasFileTransfer)
User = "alice@x"

