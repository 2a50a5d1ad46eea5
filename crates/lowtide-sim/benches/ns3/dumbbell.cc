// SPDX-License-Identifier: MIT OR Apache-2.0
// A dumbbell in ns-3 for comparison with Lowtide's simulator: greedy TCP flows over one bottleneck with a tail-drop
// queue.
//
//   dumbbell --rate=100Mbps --rtt=20ms --buffer=167 --duration=100 --from=0 --flows=TcpCubic@0,TcpLedbat@20
//
// prints one JSON object: wall-clock seconds of the run, delivered data packets, the mean time in ms that packets
// waited in the bottleneck's queue, and for each flow the mean payload rate in bit/s and the mean round-trip time in
// ms. Means are from `from` seconds to the end.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <deque>
#include <iostream>
#include <sstream>
#include <vector>

using namespace ns3;

namespace
{
const uint32_t SEGMENT = 1448; // with IP, TCP and timestamps: 1500 bytes

struct Flow
{
    std::string law;
    double start;
    uint64_t received = 0;
    uint64_t before = 0;
    double rttSum = 0;
    uint64_t rttCount = 0;
};

std::vector<Flow> flows;
double measureFrom = 0;
std::deque<Time> waiting; // when what is in the bottleneck's queue came
double waitSum = 0;
uint64_t waitCount = 0;

void
Received(uint32_t index, Ptr<const Packet> packet, const Address&)
{
    flows[index].received += packet->GetSize();
}

void
RttSample(uint32_t index, Time, Time rtt)
{
    if (Simulator::Now().GetSeconds() >= measureFrom)
    {
        flows[index].rttSum += rtt.GetSeconds() * 1e3;
        flows[index].rttCount++;
    }
}

void
Connect(uint32_t index, Ptr<Application> application)
{
    auto socket = DynamicCast<BulkSendApplication>(application)->GetSocket();
    socket->TraceConnectWithoutContext("RTT", MakeBoundCallback(&RttSample, index));
}

void
Queued(Ptr<const Packet>)
{
    waiting.push_back(Simulator::Now());
}

void
Unqueued(Ptr<const Packet>)
{
    if (Simulator::Now().GetSeconds() >= measureFrom)
    {
        waitSum += (Simulator::Now() - waiting.front()).GetSeconds() * 1e3;
        waitCount++;
    }
    waiting.pop_front();
}

void
StartMeasuring()
{
    for (auto& flow : flows)
    {
        flow.before = flow.received;
    }
}
} // namespace

int
main(int argc, char* argv[])
{
    std::string rate = "100Mbps";
    std::string rtt = "20ms";
    std::string list = "TcpCubic@0";
    uint32_t buffer = 167;
    double duration = 100;
    CommandLine command;
    command.AddValue("rate", "rate of the bottleneck", rate);
    command.AddValue("rtt", "base round-trip time", rtt);
    command.AddValue("buffer", "packets that the bottleneck queue holds", buffer);
    command.AddValue("duration", "simulated seconds", duration);
    command.AddValue("from", "means are taken from this second on", measureFrom);
    command.AddValue("flows", "LAW@START,LAW@START,...", list);
    command.Parse(argc, argv);
    std::stringstream stream(list);
    for (std::string item; std::getline(stream, item, ',');)
    {
        auto at = item.find('@');
        flows.push_back({item.substr(0, at), std::stod(item.substr(at + 1))});
    }

    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("0ms"));
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue(rate));
    bottleneck.SetChannelAttribute("Delay", TimeValue(ns3::Time(rtt) / 2));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, buffer)));

    NodeContainer routers;
    routers.Create(2);
    InternetStackHelper internet;
    internet.Install(routers);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    TrafficControlHelper traffic;
    auto connect = [&](PointToPointHelper& link, Ptr<Node> a, Ptr<Node> b) {
        auto devices = link.Install(a, b);
        auto interfaces = addresses.Assign(devices);
        traffic.Uninstall(devices); // the device's own queue is the only one
        addresses.NewNetwork();
        return interfaces;
    };
    connect(bottleneck, routers.Get(0), routers.Get(1));
    auto queue = DynamicCast<PointToPointNetDevice>(routers.Get(0)->GetDevice(1))->GetQueue();
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Queued));
    queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Unqueued));
    for (uint32_t index = 0; index < flows.size(); index++)
    {
        auto type = TypeId::LookupByName("ns3::" + flows[index].law);
        NodeContainer hosts;
        hosts.Create(2);
        internet.Install(hosts);
        hosts.Get(0)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(type));
        connect(access, hosts.Get(0), routers.Get(0));
        auto receiver = connect(access, routers.Get(1), hosts.Get(1)).GetAddress(1);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        auto sinks = sink.Install(hosts.Get(1));
        sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, index));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(receiver, 5000));
        auto sources = source.Install(hosts.Get(0));
        sources.Start(Seconds(flows[index].start));
        Simulator::Schedule(Seconds(flows[index].start) + NanoSeconds(1), &Connect, index, sources.Get(0));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(Seconds(measureFrom), &StartMeasuring);
    Simulator::Stop(Seconds(duration));
    auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

    uint64_t packets = 0;
    std::cout << "{\"flows\":[";
    for (uint32_t index = 0; index < flows.size(); index++)
    {
        auto& flow = flows[index];
        packets += flow.received / SEGMENT;
        double span = duration - std::max(measureFrom, flow.start);
        std::cout << (index ? "," : "") << "{\"cc\":\"" << flow.law << "\",\"mean_bps\":"
                  << (flow.received - flow.before) * 8 / span
                  << ",\"mean_rtt_ms\":" << (flow.rttCount ? flow.rttSum / flow.rttCount : 0) << "}";
    }
    std::cout << "],\"mean_queue_ms\":" << (waitCount ? waitSum / waitCount : 0) << ",\"packets\":" << packets << ",\"wall_s\":" << wall << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
