FileSystemDomain = "vm"
Id = 1
JobCount = 3
JobIds = "2.0 ... 2.2"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 1
RequestDisk = 1024
RequestMemory = 100
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "slotu2@home.invalid"

FileSystemDomain = "vm"
Id = 2
JobCount = 3
JobIds = "1.0 ... 1.2"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 1
RequestDisk = 1024
RequestMemory = 100
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "slotu1@home.invalid"

