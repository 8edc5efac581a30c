# The network of an execution point, beside the access points: addresses of a public network by IPv4, of the same by IPv6, of a private
# one. Arguments: name, number, and which of them, 4, 6 and p.
set -e
name=$1 i=$2 which=$3
ip netns add $name
ip link add v$i type veth peer name lan netns $name
ip link set v$i master lan up
ip -n $name link set lo up
case $which in *4*) ip -n $name addr add 192.0.2.$i/24 dev lan ;; esac
case $which in *p*) ip -n $name addr add 10.77.0.$i/24 dev lan ;; esac
case $which in *6*) ip -n $name addr add 2001:db8::$i/64 dev lan nodad ;; esac
ip -n $name link set lan up
