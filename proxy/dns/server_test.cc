#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/socket_address.h"
#include "proxy/dns/tcp_server.h"
#include "proxy/dns/testing/messages.h"
#include "proxy/dns/udp_server.h"

namespace keelson::proxy::dns {
namespace {

using ::testing::ElementsAre;

const IpAddress kLocalhost = *IpAddress::Parse("127.0.0.1");

// Answers every question with one record, when told to.
class FakeResolver : public Resolver {
 public:
  void Resolve(const Question& question, Done done) override {
    MutexLock lock(mutex_);
    asked_.push_back({question, std::move(done)});
    changed_.notify_all();
  }
  // Waits for a question and answers it; null when `fail`.
  Question AnswerOne(bool fail = false) {
    std::pair<Question, Done> asked;
    {
      MutexLock lock(mutex_);
      while (asked_.empty()) changed_.wait(mutex_);
      asked = std::move(asked_.front());
      asked_.erase(asked_.begin());
    }
    std::string packet = QuestionPacket(asked.first, 1);
    std::string reply = AnswerPacket(packet, Rcode::kNoError,
                                     {{"www.example.com", asked.first.type, 60, "\x01\x02\x03\x04"}});
    Result<StoredAnswer> stored = StoreAnswer(reply, asked.first, 1);
    EXPECT_TRUE(stored);
    asked.second(fail ? Resolved{} : Resolved{std::make_shared<StoredAnswer>(*stored)});
    return asked.first;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<Question, Done>> asked_ KEELSON_GUARDED_BY(mutex_);
};

// Holds answers to one name until they are released.
class HoldForTests : public AnswerHold {
 public:
  bool Holds(std::string_view name, bool v4) override {
    MutexLock lock(mutex_);
    return v4 && name == name_;
  }
  void Hold(std::string answer, std::function<void(std::string_view)> send) override {
    MutexLock lock(mutex_);
    held_.emplace_back(std::move(answer), std::move(send));
    changed_.notify_all();
  }
  void SetName(const char* name) {
    MutexLock lock(mutex_);
    name_ = *ParseName(name);
  }
  // Waits for an answer and sends it; what it says.
  Decoded ReleaseOne() {
    std::pair<std::string, std::function<void(std::string_view)>> one;
    {
      MutexLock lock(mutex_);
      while (held_.empty()) changed_.wait(mutex_);
      one = std::move(held_.front());
      held_.erase(held_.begin());
    }
    one.second(one.first);
    return Decode(one.first);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Name name_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, std::function<void(std::string_view)>>> held_ KEELSON_GUARDED_BY(mutex_);
};

constexpr int kMany = 300;  // endpoints of one Service

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Zone zone = *Zone::Create({});
    corev1::Service web;
    web.mutable_spec()->set_type("ClusterIP");
    web.mutable_spec()->set_cluster_ip("10.96.0.10");
    zone.UpdateService("default/web", &web);
    corev1::Service out;
    out.mutable_spec()->set_type("ExternalName");
    out.mutable_spec()->set_external_name("www.example.com");
    zone.UpdateService("default/out", &out);
    corev1::Service many;
    many.mutable_spec()->set_cluster_ip("None");
    zone.UpdateService("default/many", &many);
    discoveryv1::EndpointSlice slice;
    slice.mutable_metadata()->set_namespace_("default");
    (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "many";
    slice.set_address_type("IPv4");
    auto& port = *slice.add_ports();
    port.set_name("http");
    port.set_port(80);
    for (int i = 0; i < kMany; ++i) {
      slice.add_endpoints()->add_addresses(IpAddress::Parse("10.1.0.0")->Plus(i).ToString());
    }
    zone.UpdateSlice("default/many-1", &slice);
    zone_ = zone.Commit();
    responder_.SetZone(zone_);
    udp_ = *UdpServer::Create({{kLocalhost, 0}}, responder_);
    udp_thread_ = std::jthread([this](std::stop_token stop) { EXPECT_TRUE(udp_->Run(stop)); });
    StartTcp({});
  }
  void StartTcp(TcpOptions options) {
    tcp_.reset();
    tcp_ = *TcpServer::Create({{kLocalhost, 0}}, responder_, loop_, options);
  }

  UniqueFd Connect(int type) {
    UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    SocketAddress address(kLocalhost, type == SOCK_DGRAM ? udp_->ports()[0] : tcp_->ports()[0]);
    EXPECT_EQ(::connect(fd.get(), address.get(), address.size()), 0);
    timeval limit{10, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
  }
  static void Send(int fd, const std::string& bytes) {
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  static std::string Receive(int fd) {
    char bytes[4096];
    ssize_t size = ::recv(fd, bytes, sizeof bytes, 0);
    return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
  }
  static std::string Frame(const std::string& packet) {
    std::string out;
    Append16(out, static_cast<uint16_t>(packet.size()));
    return out + packet;
  }
  static std::string ReceiveFrame(int fd) {
    std::string out(2, '\0');
    if (::recv(fd, out.data(), 2, MSG_WAITALL) != 2) return "";
    size_t size = Get16(out, 0);
    out.resize(size);
    return ::recv(fd, out.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size) ? out : "";
  }

  FakeResolver resolver_;
  std::shared_ptr<const Snapshot> zone_;
  HoldForTests hold_;
  Responder responder_{&resolver_, Clock::Real(), &hold_};
  std::shared_ptr<event::Loop> loop_ = event::Loop::Create("dns");
  std::unique_ptr<UdpServer> udp_;
  std::unique_ptr<TcpServer> tcp_;
  std::jthread udp_thread_;
};

constexpr char kWeb[] = "web.default.svc.cluster.local";
constexpr char kManyNames[] = "many.default.svc.cluster.local";
constexpr char kWebAnswer[] = "web.default.svc.cluster.local. 5 A 10.96.0.10";

TEST_F(ServerTest, AnswersWithAddressesCanBeHeld) {
  hold_.SetName(kWeb);
  UniqueFd udp = Connect(SOCK_DGRAM), tcp = Connect(SOCK_STREAM);
  Send(udp.get(), QueryPacket(kWeb, kTypeA));
  EXPECT_THAT(hold_.ReleaseOne().answer, ElementsAre(kWebAnswer));
  EXPECT_THAT(Decode(Receive(udp.get())).answer, ElementsAre(kWebAnswer));
  Send(tcp.get(), Frame(QueryPacket(kWeb, kTypeA)));
  EXPECT_THAT(hold_.ReleaseOne().answer, ElementsAre(kWebAnswer));
  EXPECT_THAT(Decode(ReceiveFrame(tcp.get())).answer, ElementsAre(kWebAnswer));
  // Other names and other questions pass.
  Send(udp.get(), QueryPacket(kWeb, kTypeAaaa));
  EXPECT_EQ(Decode(Receive(udp.get())).rcode, "NOERROR");
  // The name that was asked for counts, not where it leads; and so does an answer of other servers.
  hold_.SetName("www.example.com");
  Send(udp.get(), QueryPacket("out.default.svc.cluster.local", kTypeA));
  resolver_.AnswerOne();
  EXPECT_EQ(Decode(Receive(udp.get())).answer.size(), 2u);
  Send(udp.get(), QueryPacket("www.example.com", kTypeA));
  resolver_.AnswerOne();
  EXPECT_EQ(hold_.ReleaseOne().answer.size(), 1u);
  EXPECT_EQ(Decode(Receive(udp.get())).answer.size(), 1u);
}

TEST_F(ServerTest, AnswersFromTheZone) {
  UniqueFd udp = Connect(SOCK_DGRAM);
  Send(udp.get(), "junk");
  Send(udp.get(), std::string(1600, 'x'));
  for (uint16_t id = 0; id < 100; ++id) {
    Send(udp.get(), QueryPacket(kWeb, kTypeA, {.id = id}));
    Decoded out = Decode(Receive(udp.get()));
    ASSERT_EQ(out.id, id);
    EXPECT_THAT(out.answer, ElementsAre(kWebAnswer));
  }
  UniqueFd tcp = Connect(SOCK_STREAM);
  std::string three;
  for (uint16_t id = 0; id < 3; ++id) three += Frame(QueryPacket(kWeb, kTypeA, {.id = id}));
  Send(tcp.get(), three);
  for (uint16_t id = 0; id < 3; ++id) EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, id);
}

TEST_F(ServerTest, AsksOthersForTheRest) {
  UniqueFd udp = Connect(SOCK_DGRAM), tcp = Connect(SOCK_STREAM);
  Send(udp.get(), QueryPacket("WWW.example.com", kTypeA));
  EXPECT_EQ(NameText(resolver_.AnswerOne().name), "www.example.com.");
  Decoded out = Decode(Receive(udp.get()));
  EXPECT_EQ(out.answer.size(), 1u);
  EXPECT_FALSE(out.authoritative);
  Send(tcp.get(), Frame(QueryPacket("www.example.com", kTypeA, {.id = 5})));
  resolver_.AnswerOne(true);
  EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).rcode, "SERVFAIL");
  Send(udp.get(), QueryPacket("out.default.svc.cluster.local", kTypeA));
  EXPECT_EQ(NameText(resolver_.AnswerOne().name), "www.example.com.");
  EXPECT_THAT(Decode(Receive(udp.get())).answer,
              ElementsAre("out.default.svc.cluster.local. 5 CNAME www.example.com.",
                          "www.example.com. 60 A 1.2.3.4"));
}

TEST_F(ServerTest, RefusesAndGivesErrors) {
  UniqueFd udp = Connect(SOCK_DGRAM);
  std::string packet = QueryPacket(kWeb, kTypeAxfr, {.edns = true});
  Send(udp.get(), packet);
  EXPECT_EQ(Decode(Receive(udp.get())).rcode, "REFUSED");
  packet[packet.size() - 5] = 1;  // EDNS version
  Send(udp.get(), packet);
  EXPECT_EQ(Decode(Receive(udp.get())).rcode, "BADVERS");
  responder_.SetZone(nullptr);
  Send(udp.get(), QueryPacket(kWeb, kTypeA));
  EXPECT_EQ(Decode(Receive(udp.get())).rcode, "SERVFAIL");
}

TEST_F(ServerTest, ClosesIdleAndWrongConnections) {
  StartTcp({.max_connections = 1, .idle = std::chrono::milliseconds(50)});
  UniqueFd idle = Connect(SOCK_STREAM), second = Connect(SOCK_STREAM);
  EXPECT_EQ(Receive(second.get()), "");  // one too many
  EXPECT_EQ(Receive(idle.get()), "");
  StartTcp({});
  UniqueFd wrong = Connect(SOCK_STREAM);
  Send(wrong.get(), Frame("short"));
  EXPECT_EQ(Receive(wrong.get()), "");
}

TEST_F(ServerTest, ReadsOnWhenAnswersAreTaken) {
  StartTcp({.max_pending = 2});
  UniqueFd tcp = Connect(SOCK_STREAM);
  std::string all;
  for (uint16_t id = 0; id < 20; ++id) all += Frame(QueryPacket("www.example.com", kTypeA, {.id = id}));
  Send(tcp.get(), all);
  for (int i = 0; i < 20; ++i) resolver_.AnswerOne();
  for (uint16_t id = 0; id < 20; ++id) EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, id);
}

TEST_F(ServerTest, PipelinedQuestionsAreAnsweredAsAnswersCome) {
  UniqueFd tcp = Connect(SOCK_STREAM);
  Send(tcp.get(), Frame(QueryPacket("www.example.com", kTypeA, {.id = 1})) +
                      Frame(QueryPacket(kWeb, kTypeA, {.id = 2})) +
                      Frame(QueryPacket("other.example.com", kTypeA, {.id = 3})) +
                      Frame(QueryPacket(kManyNames, kTypeA, {.id = 4})));
  EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, 2);
  EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, 4);
  resolver_.AnswerOne();
  EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, 1);
  resolver_.AnswerOne(true);
  Decoded last = Decode(ReceiveFrame(tcp.get()));
  EXPECT_EQ(last.id, 3);
  EXPECT_EQ(last.rcode, "SERVFAIL");
}

TEST_F(ServerTest, QuestionsMayComeInPieces) {
  UniqueFd tcp = Connect(SOCK_STREAM);
  const int on = 1;
  ::setsockopt(tcp.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  for (char byte : Frame(QueryPacket(kWeb, kTypeA, {.id = 7}))) Send(tcp.get(), std::string(1, byte));
  EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, 7);
}

TEST_F(ServerTest, WhoHasAskedAllStillGetsTheAnswers) {
  UniqueFd tcp = Connect(SOCK_STREAM);
  Send(tcp.get(), Frame(QueryPacket("www.example.com", kTypeA, {.id = 1})) +
                      Frame(QueryPacket(kWeb, kTypeA, {.id = 2})));
  ASSERT_EQ(::shutdown(tcp.get(), SHUT_WR), 0);
  EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, 2);
  resolver_.AnswerOne();
  EXPECT_EQ(Decode(ReceiveFrame(tcp.get())).id, 1);
  EXPECT_EQ(Receive(tcp.get()), "");  // closed
}

// Resolvers tell forged answers by the case of the name that they asked for.
TEST_F(ServerTest, TheQuestionComesBackAsItWas) {
  UniqueFd udp = Connect(SOCK_DGRAM), tcp = Connect(SOCK_STREAM);
  for (const std::string name : {"wEb.DEFAULT.svc.cLuStEr.LOCAL", "nONE.default.SVC.cluster.local",
                                 "WwW.eXample.COM", "OUT.default.svc.cluster.local"}) {
    const std::string query = QueryPacket(name, kTypeA);
    const bool asks = name.ends_with("COM") || name.starts_with("OUT");
    Send(udp.get(), query);
    if (asks) resolver_.AnswerOne();
    EXPECT_EQ(Receive(udp.get()).substr(kHeaderSize, query.size() - kHeaderSize), query.substr(kHeaderSize))
        << name;
    Send(tcp.get(), Frame(query));
    if (asks) resolver_.AnswerOne();
    EXPECT_EQ(ReceiveFrame(tcp.get()).substr(kHeaderSize, query.size() - kHeaderSize),
              query.substr(kHeaderSize))
        << name;
  }
}

TEST_F(ServerTest, WhatUdpDoesNotHoldIsWholeOverTcp) {
  UniqueFd udp = Connect(SOCK_DGRAM), tcp = Connect(SOCK_STREAM);
  struct {
    QueryOptions options;
    size_t least, most;
  } cases[] = {{{}, 400, 512},
               {{.edns = true, .udp_size = 1000}, 900, 1000},
               {{.edns = true, .udp_size = 65535}, 1100, 1232}};
  for (const auto& c : cases) {
    Send(udp.get(), QueryPacket(kManyNames, kTypeA, c.options));
    std::string answer = Receive(udp.get());
    EXPECT_GE(answer.size(), c.least);
    EXPECT_LE(answer.size(), c.most);
    Decoded cut = Decode(answer);
    EXPECT_TRUE(cut.truncated);
    EXPECT_EQ(cut.edns, c.options.edns);
    Send(tcp.get(), Frame(QueryPacket(kManyNames, kTypeA, c.options)));
    Decoded whole = Decode(ReceiveFrame(tcp.get()));
    EXPECT_FALSE(whole.truncated);
    EXPECT_EQ(whole.answer.size(), static_cast<size_t>(kMany));
  }
  Send(tcp.get(), Frame(QueryPacket(kManyNames, kTypeSrv)));
  Decoded servers = Decode(ReceiveFrame(tcp.get()));
  EXPECT_EQ(servers.answer.size(), static_cast<size_t>(kMany));
  EXPECT_EQ(servers.additional.size(), static_cast<size_t>(kMany));
}

// A source address may be forged: over UDP nobody is sent much more than he might have asked for.
TEST_F(ServerTest, LittleToAmplify) {
  UniqueFd udp = Connect(SOCK_DGRAM);
  const size_t soa_and_more = 120;
  struct Case {
    const char* name;
    uint16_t type;
    size_t more;  // than the question, at most; 0: as much as UDP takes
  } cases[] = {{kManyNames, kTypeA, 0},         {kManyNames, kTypeSrv, 0},
               {kManyNames, kTypeAny, 22},      {"cluster.local", kTypeAny, 22},
               {kWeb, kTypeTxt, soa_and_more},  {"none.default.svc.cluster.local", kTypeA, soa_and_more},
               {"cluster.local", kTypeAxfr, 0}, {kManyNames, 48, soa_and_more}};  // DNSKEY
  for (const Case& c : cases) {
    for (QueryOptions options :
         {QueryOptions{}, QueryOptions{.edns = true, .udp_size = 65535, .dnssec_ok = true}}) {
      const std::string query = QueryPacket(c.name, c.type, options);
      Send(udp.get(), query);
      const size_t size = Receive(udp.get()).size();
      EXPECT_GT(size, 0u) << c.name;
      EXPECT_LE(size, options.edns ? kMaxUdpSize : kMinUdpSize) << c.name << " " << c.type;
      if (c.more > 0) {
        EXPECT_LE(size, query.size() + c.more) << c.name << " " << c.type;
      }
    }
  }
  // What is refused gets back no more than its own question.
  std::string odd = QueryPacket(kWeb, kTypeA, {.edns = true});
  for (auto [at, value] : {std::pair<size_t, uint16_t>{2, 5 << 11}, {4, 0}, {4, 2}, {6, 1}, {10, 9}}) {
    std::string query = odd;
    Set16(query.data() + at, value);
    Send(udp.get(), query);
    EXPECT_LE(Receive(udp.get()).size(), query.size()) << at;
  }
  // Answers are not answered: two servers would talk for ever.
  std::string answer = QueryPacket(kWeb, kTypeA, {.id = 1});
  Set16(answer.data() + 2, 0x8100);
  Send(udp.get(), answer);
  Send(udp.get(), QueryPacket(kWeb, kTypeA, {.id = 2}));
  EXPECT_EQ(Decode(Receive(udp.get())).id, 2);
}

class AskerFrom : public Asker {
 public:
  AskerFrom(const char* ip, bool tcp) : ip_(*IpAddress::Parse(ip)), tcp_(tcp) {}
  bool tcp() const override { return tcp_; }
  bool v4() const override { return true; }
  IpAddress source() const override { return ip_; }
  std::function<void(std::string_view)> Later() override {
    return [this](std::string_view answer) { later = answer; };
  }
  std::string later;

 private:
  IpAddress ip_;
  bool tcp_;
};

// The traffic to a forged address is limited; a real client turns to TCP.
TEST_F(ServerTest, AFloodIsCutAndNobodyStaysWithoutAnAnswer) {
  FakeClock clock;
  Responder responder(&resolver_, clock);
  responder.SetZone(zone_);
  AskerFrom victim("10.1.0.7", false), other("10.1.0.8", false), by_tcp("10.1.0.7", true);
  std::vector<char> buffer(kMaxTcpSize);
  auto ask = [&](Asker& asker, const char* name) {
    size_t size = responder.Handle(QueryPacket(name, kTypeA, {.edns = true, .udp_size = 65535}), asker,
                                   {buffer.data(), asker.tcp() ? kMaxTcpSize : kMaxUdpSize});
    return Decode({buffer.data(), size});
  };
  size_t given = 0;
  Decoded last = ask(victim, kManyNames);
  for (; !last.answer.empty() && given < 10000; ++given) last = ask(victim, kManyNames);
  EXPECT_NEAR(static_cast<double>(given), AmplificationGuard::kBytesPerSecond / 1232.0, 50);
  EXPECT_TRUE(last.truncated);
  EXPECT_TRUE(last.valid);
  EXPECT_EQ(ask(victim, kWeb).answer.size(), 1u);
  EXPECT_FALSE(ask(other, kManyNames).answer.empty());
  EXPECT_EQ(ask(by_tcp, kManyNames).answer.size(), static_cast<size_t>(kMany));
  clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(ask(victim, kManyNames).answer.empty());
}

}  // namespace
}  // namespace keelson::proxy::dns
