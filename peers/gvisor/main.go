// Command gvisor-peer serves on gVisor's TCP/IP stack what `eft bench peer` serves on eft: an echo, a sink and a source. It is
// what `eft bench others` measures eft beside.
//
//	gvisor-peer INTERFACE ADDRESS/PREFIX
//
// It takes an end of a veth pair, prints "listening", and then a line of bytes and seconds for each connection to the sink.
package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	echoPort   = 7
	sinkPort   = 5201
	sourcePort = 5202

	nic         = 1
	mtu         = 1500
	segmentMax  = 65535
	bufferBytes = 4 << 20
	chunk       = 256 << 10
	request     = 64
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: gvisor-peer INTERFACE ADDRESS/PREFIX"))
	}
	at, err := netip.ParsePrefix(os.Args[2])
	fail(err)
	fd, err := open(os.Args[1])
	fail(err)
	s, err := newStack(fd, at)
	fail(err)
	for port, serve := range map[uint16]func(io.ReadWriteCloser){echoPort: echo, sinkPort: sink, sourcePort: source} {
		listener, err := gonet.ListenTCP(s, tcpip.FullAddress{Port: port}, ipv4.ProtocolNumber)
		fail(err)
		go func() {
			for {
				conn, err := listener.Accept()
				fail(err)
				go serve(conn)
			}
		}()
	}
	fmt.Println("listening")
	select {}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gvisor-peer:", err)
		os.Exit(1)
	}
}

// open opens a packet socket on an interface, whose frames have the header that lets the kernel segment and add checksums. gVisor
// has segmentation offload on sockets only, and runs containers this way.
func open(name string) (int, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	// In network byte order.
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return -1, err
	}
	for _, option := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bufferBytes); err != nil {
			return -1, err
		}
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index})
}

func newStack(fd int, at netip.Prefix) (*stack.Stack, error) {
	link, err := fdbased.New(&fdbased.Options{
		FDs:                []int{fd},
		MTU:                mtu,
		EthernetHeader:     true,
		Address:            tcpip.LinkAddress("\x02\x00\x00\x00\x00\x07"),
		GSOMaxSize:         segmentMax,
		RXChecksumOffload:  true,
		PacketDispatchMode: fdbased.RecvMMsg,
	})
	if err != nil {
		return nil, err
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	in := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: bufferBytes, Max: bufferBytes}
	out := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: bufferBytes, Max: bufferBytes}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &in, &out} {
		if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, fmt.Errorf("%v", err)
		}
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return nil, fmt.Errorf("%v", err)
	}
	address := tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{
			Address:   tcpip.AddrFromSlice(at.Addr().AsSlice()),
			PrefixLen: at.Bits(),
		},
	}
	if err := s.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("%v", err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, nil
}

func echo(conn io.ReadWriteCloser) {
	defer conn.Close()
	buffer := make([]byte, request)
	for {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return
		}
		if _, err := conn.Write(buffer); err != nil {
			return
		}
	}
}

func sink(conn io.ReadWriteCloser) {
	defer conn.Close()
	buffer := make([]byte, chunk)
	var total int
	var start time.Time
	for {
		n, err := conn.Read(buffer)
		if start.IsZero() {
			start = time.Now()
		}
		total += n
		if err != nil {
			fmt.Println(total, time.Since(start).Seconds())
			return
		}
	}
}

func source(conn io.ReadWriteCloser) {
	defer conn.Close()
	buffer := make([]byte, chunk)
	for {
		if _, err := conn.Write(buffer); err != nil {
			return
		}
	}
}
