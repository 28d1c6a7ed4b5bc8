// Packets between pods through the rules of network policies, as kube-cni writes them.
#include "ctl/trace/connection_report.h"
#include "ctl/trace/domain_names.h"
#include "ctl/trace/testing/fake_node.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const nft::Verdict kReturn = {nft::Verdict::Kind::kReturn}, kDrop = {nft::Verdict::Kind::kDrop};

// A table keelson-policy: 10.244.0.2 is isolated for ingress, 10.244.0.9 for egress.
class PolicyNode : public FakeNode {
 public:
  PolicyNode() {
    nft::LiveTable table;
    table.contents.table = {nft::Family::kInet, "keelson-policy"};
    table.contents.chains["forward"].chain = {"forward",
                                              nft::Hook{nft::HookType::kFilter, nft::HookPoint::kForward, 0}};
    for (const char* name : {"egress4", "ingress4"}) {
      table.contents.sets[name].set = {.name = name, .key = {Type::kIpv4Addr}, .verdicts = true};
    }
    auto lead = [&](const char* set, const char* address, const char* chain) {
      std::string key = Key().Ip(Ip(address)).bytes();
      table.contents.sets[set].elements[key] = {.key = key, .verdict = nft::Jump(chain)};
    };
    lead("egress4", "10.244.0.9", "egress4-1");
    lead("ingress4", "10.244.0.2", "ingress4-1");
    auto add = [&](nft::Rule rule) {
      table.programs[rule.chain()].push_back({rule.exprs(), "", 0, {}, rule.note()});
    };
    auto is_port = [](const char* chain, uint16_t port) {
      return Rule(chain).Load(0, Field::kDestinationPort).Equal(0, Key().Port(port).bytes());
    };
    add(Rule("forward")
            .Load(0, Field::kIpDaddr)
            .Equal(0, Key().Ip(Ip("10.244.0.77")).bytes())
            .Finish(kDrop)
            .SetNote("not ready"));
    add(Rule("forward").Load(0, Field::kIpSaddr).VerdictMap(0, "egress4"));
    add(Rule("forward").Load(0, Field::kIpDaddr).VerdictMap(0, "ingress4"));
    add(is_port("egress4-1", 80).Finish(kReturn).SetNote("x/out egress[0]"));
    add(Rule("egress4-1").Finish(kDrop).SetNote("x/out"));
    add(Rule("ingress4-1")
            .Load(0, Field::kIpSaddr)
            .Equal(0, Key().Ip(Ip("10.244.0.9")).bytes())
            .Finish(kReturn)
            .SetNote("x/in ingress[1], x/more ingress[0]"));
    add(Rule("ingress4-1").Finish(kDrop).SetNote("x/in, x/more"));
    for (const char* name :
         {"subdomains4-example.com", "domain4-www.example.com", "domain4-new.example.org"}) {
      table.contents.sets[name].set = {.name = name, .key = {Type::kIpv4Addr}};
    }
    for (const char* name : {"subdomains4-example.com", "domain4-www.example.com"}) {
      std::string key = Key().Ip(Ip("203.0.113.5")).bytes();
      table.contents.sets[name].elements[key] = {.key = key};
    }
    policies_ = {std::move(table)};
  }
  const std::vector<nft::LiveTable>& tables() const override { return policies_; }

 private:
  std::vector<nft::LiveTable> policies_;
};

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionReport Explain(const char* from, const char* to, uint16_t port = 80) {
    Source source{Source::kPod, "pod x/a", {Ip(from)}};
    ConnectionReport out{.connection = connection_, .paths = {}, .notes = NotesOf(connection_)};
    out.connection.port = port;
    out.paths.push_back(
        JudgeConnection(Ip(from), FollowPacket(node_, source, {.ip = Ip(to), .port = port}, 6)));
    return out;
  }
  static std::vector<std::string> Decisions(const ConnectionReport& report) {
    std::vector<std::string> out;
    for (const PolicyDecision& decision : report.paths[0].decisions) out.push_back(ToText(decision));
    return out;
  }

  PolicyNode node_;
  Connection connection_{"x/a", "x/b", kNode, kNode, kNode, "TCP", 80};
};

TEST_F(ConnectionTest, NamesTheRulesThatLetItThrough) {
  ConnectionReport report = Explain("10.244.0.9", "10.244.0.2");
  EXPECT_FALSE(report.HasProblems());
  EXPECT_THAT(Decisions(report), ElementsAre("egress is allowed by x/out egress[0]",
                                             "ingress is allowed by x/in ingress[1], x/more ingress[0]"));
  EXPECT_THAT(ToTable(report), HasSubstr("10.244.0.9 to 10.244.0.2:80: this node lets it through"));
}

TEST_F(ConnectionTest, NamesThePoliciesThatDropIt) {
  ConnectionReport report = Explain("10.244.0.9", "10.244.0.2", 81);
  EXPECT_TRUE(report.HasProblems());
  EXPECT_THAT(Decisions(report),
              ElementsAre("egress is denied: x/out isolates the pod, and no rule of it lets "
                          "this through"));
  EXPECT_THAT(ToTable(report), HasSubstr("this node drops it"));
  EXPECT_THAT(ToTable(report), Not(HasSubstr("no policy restricts")));
  report = Explain("10.244.0.8", "10.244.0.2");
  EXPECT_THAT(Decisions(report),
              ElementsAre("ingress is denied: x/in, x/more isolate the pod, and no rule of "
                          "theirs lets this through"));
  EXPECT_THAT(ToTable(report), HasSubstr("no policy restricts egress of x/a"));
}

TEST_F(ConnectionTest, PodsWithoutPoliciesAndAddressesThatAreNotReady) {
  ConnectionReport report = Explain("10.244.0.8", "10.244.0.3");
  EXPECT_FALSE(report.HasProblems());
  EXPECT_THAT(ToTable(report), HasSubstr("no policy restricts ingress of x/b"));
  report = Explain("10.244.0.8", "10.244.0.77");
  EXPECT_TRUE(report.HasProblems());
  EXPECT_THAT(ToTable(report), HasSubstr("is not ready"));
}

TEST_F(ConnectionTest, TheOtherNodeDecidesAboutItsSide) {
  connection_.destination_node = "node2";
  ConnectionReport report = Explain("10.244.0.8", "10.244.1.2");
  EXPECT_THAT(report.notes,
              ElementsAre("ingress of x/b is decided on its node node2: run nodectl there too"));
  EXPECT_THAT(ToTable(report), Not(HasSubstr("restricts ingress")));
  EXPECT_EQ(ToDocument(report).at("paths").at(0).at("opens").as_bool(), true);
}

TEST_F(ConnectionTest, DestinationsOutsideOfTheCluster) {
  connection_.destination = "203.0.113.5";
  connection_.destination_node = "";
  ConnectionReport report = Explain("10.244.0.9", "203.0.113.5", 81);
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_THAT(ToTable(report), HasSubstr("From pod x/a to 203.0.113.5, port 81/TCP"));
  EXPECT_THAT(ToTable(report), Not(HasSubstr("ingress")));
}

TEST_F(ConnectionTest, NamesOfNetworkPoliciesAndTheirAddresses) {
  const std::vector<KnownDomain> known = DomainsOf(node_.tables(), "www.example.com");
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].pattern, "*.example.com");
  EXPECT_THAT(known[0].addresses, ElementsAre(Ip("203.0.113.5")));
  EXPECT_EQ(known[1].pattern, "www.example.com");
  EXPECT_THAT(NotesOfName("www.example.com", known), ElementsAre(HasSubstr("all names below it")));
  EXPECT_THAT(NotesOfName("new.example.org", DomainsOf(node_.tables(), "new.example.org")),
              ElementsAre(HasSubstr("has no address yet")));
  EXPECT_THAT(NotesOfName("example.net", DomainsOf(node_.tables(), "example.net")),
              ElementsAre(HasSubstr("no network policy")));
  const std::vector<KnownDomain> all = AllDomains(node_.tables());
  EXPECT_EQ(all.size(), 3u);
  EXPECT_THAT(NotesOfAddress(Ip("203.0.113.5"), all),
              ElementsAre(HasSubstr("for *.example.com, www.example.com")));
  EXPECT_THAT(NotesOfAddress(Ip("203.0.113.6"), all), ElementsAre(HasSubstr("for none of the domain names")));
  EXPECT_THAT(NotesOfAddress(Ip("203.0.113.6"), {}), IsEmpty());
}

}  // namespace
}  // namespace keelson::ctl
