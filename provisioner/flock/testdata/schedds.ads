CollectorHost = "127.0.0.1:22618"
MyAddress = "<127.0.0.1:8851?addrs=127.0.0.1-8851&alias=vm>"
Name = "home@"
ScheddIpAddr = "<127.0.0.1:8851?addrs=127.0.0.1-8851&alias=vm>"

CollectorHost = "127.0.0.1:21618"
MyAddress = "<127.0.0.1:1259?addrs=127.0.0.1-1259&alias=vm>"
Name = "ours@"
ScheddIpAddr = "<127.0.0.1:1259?addrs=127.0.0.1-1259&alias=vm>"

CollectorHost = "127.0.0.1:22618"
MyAddress = "<127.0.0.1:25389?addrs=127.0.0.1-25389&alias=vm>"
Name = "two@"
ScheddIpAddr = "<127.0.0.1:25389?addrs=127.0.0.1-25389&alias=vm>"

