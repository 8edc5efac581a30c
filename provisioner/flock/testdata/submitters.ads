IdleJobs = 4
MyAddress = "<127.0.0.1:25389?addrs=127.0.0.1-25389&alias=vm>"
Name = "slotu1@acct.invalid"
ScheddIpAddr = "<127.0.0.1:25389?addrs=127.0.0.1-25389&alias=vm>"
ScheddName = "two@"
SubmitterTag = "127.0.0.1:21618"

IdleJobs = 3
MyAddress = "<127.0.0.1:8851?addrs=127.0.0.1-8851&alias=vm>"
Name = "slotu1@home.invalid"
ScheddIpAddr = "<127.0.0.1:8851?addrs=127.0.0.1-8851&alias=vm>"
ScheddName = "home@"
SubmitterTag = "127.0.0.1:21618"

IdleJobs = 3
MyAddress = "<127.0.0.1:1259?addrs=127.0.0.1-1259&alias=vm>"
Name = "slotu1@ours.invalid"
ScheddIpAddr = "<127.0.0.1:1259?addrs=127.0.0.1-1259&alias=vm>"
ScheddName = "ours@"
SubmitterTag = ""

IdleJobs = 3
MyAddress = "<127.0.0.1:8851?addrs=127.0.0.1-8851&alias=vm>"
Name = "slotu2@home.invalid"
ScheddIpAddr = "<127.0.0.1:8851?addrs=127.0.0.1-8851&alias=vm>"
ScheddName = "home@"
SubmitterTag = "127.0.0.1:21618"

