FileSystemDomain = "vm"
FlockTo = "127.0.0.1:21618"
Id = 1
JobCount = 1
JobIds = "3.0"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 1
RequestDisk = 1024
RequestMemory = 100
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "slotu1@home.invalid"

FileSystemDomain = "vm"
Id = 2
JobCount = 2
JobIds = "2.0 2.1"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 1
RequestDisk = 1024
RequestMemory = 100
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "slotu1@home.invalid"

AccountingGroup = "group_phys.alice"
FileSystemDomain = "vm"
Id = 3
JobCount = 2
JobIds = "5.0 5.1"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 1
RequestDisk = 1024
RequestMemory = 100
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "slotu1@home.invalid"

FileSystemDomain = "vm"
FlockTo = "DEFAULT"
Id = 4
JobCount = 4
JobIds = "4.0 ... 4.3"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 1
RequestDisk = 1024
RequestMemory = 100
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "slotu1@home.invalid"

