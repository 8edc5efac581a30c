Id = 1
JobCount = 3
JobIds = "6.0 ... 6.2"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 2
RequestDisk = 100
RequestMemory = 60000
Requirements = (TARGET.HasCVMFS) && (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && (TARGET.HasFileTransfer)
User = "alice@x"

