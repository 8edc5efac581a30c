Bar = Baz > 1
Baz = 2
FileSystemDomain = "vm"
Id = 1
JobCount = 1000
JobIds = "1.0 ... 1.999"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 1
RequestDisk = 100
RequestMemory = 1024
Requirements = ((TARGET.FooSite == "x") && MY.Bar) && (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "alice@x"

FileSystemDomain = "vm"
Id = 2
JobCount = 20
JobIds = "2.0 ... 3.9"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 2
RequestDisk = 100
RequestMemory = 2048
Requirements = (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "bob@x"

ContainerImage = "docker://debian:13"
FileSystemDomain = "vm"
Id = 3
JobCount = 2
JobIds = "7.0 7.1"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 2
RequestDisk = 1048576
RequestGPUs = 1
RequestMemory = 1024
Requirements = (TARGET.Arch == "X86_64") && TARGET.HasContainer && TARGET.HasDockerURL && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && (TARGET.GPUs >= RequestGPUs) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "bob@x"

ContainerImage = "docker://debian:13"
FileSystemDomain = "vm"
Id = 4
JobCount = 1
JobIds = "8.0"
JobStatus = 1
JobUniverse = 5
Rank = 0.0
RequestCpus = 2
RequestDisk = 1048576
RequestGPUs = 1
RequestMemory = ifThenElse(MemoryUsage =!= undefined,2 * MemoryUsage,512)
Requirements = (TARGET.Arch == "X86_64") && TARGET.HasContainer && TARGET.HasDockerURL && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk)) && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && (TARGET.GPUs >= RequestGPUs) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))
User = "bob@x"

