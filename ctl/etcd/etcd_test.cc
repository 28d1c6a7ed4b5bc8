#include <gmock/gmock.h>

#include "ctl/etcd/plan.h"
#include "ctl/etcd/report.h"
#include "ctl/etcd/settings.h"
#include "ctl/host/paths.h"
#include "ctl/host/testing/memory_host.h"

namespace keelson::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

etcd::MemberInfo Info(uint64_t id, const std::string& name, bool learner = false) {
  const std::string host = "192.0.2." + std::to_string(id);
  return {
      id, name, {EtcdUrl(host, kEtcdPeerPort)}, {EtcdUrl(host, kEtcdClientPort), "unix://etcd:0"}, learner};
}
std::string Peer(uint64_t id) { return EtcdUrl("192.0.2." + std::to_string(id), kEtcdPeerPort); }

// Members 1, 2, ...: those of `down` do not answer; `leader` leads, 0: there is none.
EtcdView View(size_t count, uint64_t leader, const std::vector<uint64_t>& down = {}) {
  EtcdView out;
  for (uint64_t id = 1; id <= count; ++id) {
    SeenMember& member = out.members.emplace_back();
    member.info = Info(id, "cp-" + std::to_string(id));
    member.endpoint = member.info.client_urls[0];
    if (std::find(down.begin(), down.end(), id) != down.end()) {
      member.error = "cannot be reached";
      continue;
    }
    member.status.emplace();
    member.status->member_id = id;
    member.status->leader = leader;
    member.status->version = "3.5.16";
    member.status->db_size = 20480;
  }
  return out;
}

TEST(EtcdPlan, TheLeaderIsDefragmentedLast) {
  EXPECT_THAT(*PlanDefragment(View(3, 1)),
              ElementsAre("https://192.0.2.2:2379", "https://192.0.2.3:2379", "https://192.0.2.1:2379"));
  EXPECT_THAT(*PlanDefragment(View(1, 1)), ElementsAre("https://192.0.2.1:2379"));
  const auto refused = PlanDefragment(View(3, 1, {2}));
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("member cp-2 is not healthy (cannot be reached)"));
  EXPECT_THAT(PlanDefragment(View(2, 0)).error().message(), HasSubstr("(no leader)"));
}

TEST(EtcdPlan, ARemovalKeepsTheQuorum) {
  EXPECT_TRUE(CheckRemoval(View(3, 1), 1));
  EXPECT_TRUE(CheckRemoval(View(3, 1, {3}), 3)) << "who is down may go";
  EXPECT_TRUE(CheckRemoval(View(2, 1), 2));
  EXPECT_TRUE(CheckRemoval(View(1, 1), 1)) << "the last one goes with the cluster";
  EXPECT_EQ(
      CheckRemoval(View(3, 1, {3}), 1).error().message(),
      "without this member etcd would lose its quorum: 1 of the 2 others are healthy, and 2 are needed");
  EXPECT_FALSE(CheckRemoval(View(2, 1, {1}), 2));
  EXPECT_TRUE(CheckRemoval(View(5, 1, {2}), 1));
  EXPECT_FALSE(CheckRemoval(View(5, 1, {2, 3}), 1));
  EXPECT_FALSE(CheckRemoval(View(3, 0), 1)) << "without a leader none is healthy";
  EtcdView learner = View(2, 1);
  learner.members[1].info.learner = true;
  EXPECT_TRUE(CheckRemoval(learner, 2)) << "a learner has no vote to lose";
}

TEST(EtcdPlan, AMemberOfALostMachineIsRemoved) {
  EtcdView view = View(3, 1, {3});
  EXPECT_EQ(FindMember(view, "cp-3")->info.id, 3u);
  EXPECT_EQ(FindMember(view, "2")->info.name, "cp-2");
  EXPECT_EQ(FindMember(view, "cp-4").error().message(),
            "etcd has no member cp-4; it has: 1 cp-1, 2 cp-2, 3 cp-3");
  view.members[1].info.name = "cp-3";
  EXPECT_EQ(FindMember(view, "cp-3").error().message(), "2 members have the name cp-3: give an id");

  view = View(3, 1, {3});
  EXPECT_TRUE(CheckLost(view, view.members[2], false));
  const auto answers = CheckLost(view, view.members[1], false);
  EXPECT_TRUE(answers.error().Is(Code::kConflict));
  EXPECT_THAT(answers.error().message(), HasSubstr("'nodectl reset' on its machine takes it out"));
  EXPECT_TRUE(CheckLost(view, view.members[1], true));
  const EtcdView two_down = View(4, 1, {3, 4});
  const auto quorum = CheckLost(View(5, 1, {3, 4, 5}), View(5, 1, {3, 4, 5}).members[4], false);
  EXPECT_TRUE(quorum.error().Is(Code::kUnavailable));
  EXPECT_THAT(quorum.error().message(), AllOf(HasSubstr("would lose its quorum"), HasSubstr("--force")));
  EXPECT_TRUE(CheckLost(two_down, two_down.members[3], false)) << "2 of the 3 others are healthy";
  const EtcdView last = View(1, 0, {1});
  EXPECT_TRUE(CheckLost(last, last.members[0], true).error().Is(Code::kInvalid)) << "also by force";
}

TEST(EtcdPlan, MembersAreOneMinorVersionApart) {
  EtcdView view = View(3, 1, {2});
  for (const Version& own : {Version{3, 5, 0}, Version{3, 5, 30}, Version{3, 6, 1}}) {
    EXPECT_TRUE(CheckVersions(view, own));
  }
  EXPECT_THAT(CheckVersions(view, {3, 4, 23}).error().message(),
              HasSubstr("etcd on this machine is 3.4, and the cluster's is 3.5: install etcd 3.5"));
  view.members[2].status->version = "3.4.23";
  EXPECT_TRUE(CheckVersions(view, {3, 4, 30}));
  EXPECT_TRUE(CheckVersions(view, {3, 5, 16}));
  EXPECT_THAT(CheckVersions(view, {3, 6, 0}).error().message(),
              HasSubstr("that of member cp-3 is 3.4: members may be one minor version apart"));
  view.members[0].status->version = "unknown";
  EXPECT_FALSE(CheckVersions(view, {3, 5, 16}));
}

TEST(EtcdPlan, AMachineJoinsStepByStep) {
  using Do = JoinStep::Do;
  const std::vector<etcd::MemberInfo> others = {Info(1, "cp-1"), Info(2, "cp-2")};
  const auto with = [&](etcd::MemberInfo own) {
    std::vector<etcd::MemberInfo> out = others;
    out.push_back(std::move(own));
    return out;
  };
  struct Case {
    std::vector<etcd::MemberInfo> members;
    bool has_data;
    Do action;
    uint64_t id;
  };
  const Case cases[] = {
      {others, false, Do::kAdd, 0},
      {with(Info(3, "", true)), false, Do::kStart, 3},
      {with(Info(3, "", true)), true, Do::kStart, 3},
      {with(Info(3, "cp-3", true)), true, Do::kStart, 3},
      {with(Info(3, "cp-3", true)), false, Do::kReplace, 3},
      {with(Info(3, "cp-3")), true, Do::kNothing, 3},
      {with(Info(3, "cp-3")), false, Do::kReplace, 3},
  };
  for (const Case& one : cases) {
    const JoinStep step = PlanJoin(one.members, Peer(3), one.has_data);
    EXPECT_EQ(step.action, one.action);
    EXPECT_EQ(step.id, one.id);
  }
  EXPECT_EQ(InitialCluster(with(Info(3, "", true)), "cp-3", Peer(3)),
            "cp-1=https://192.0.2.1:2380,cp-2=https://192.0.2.2:2380,cp-3=https://192.0.2.3:2380");
  EXPECT_THAT(InitialCluster(with(Info(255, "")), "cp-3", Peer(3)), HasSubstr("ff=https://192.0.2.255:2380"));
  EXPECT_THAT(ClientUrls(with(Info(3, "cp-3", true))),
              ElementsAre("https://192.0.2.1:2379", "https://192.0.2.2:2379"));
  EXPECT_THAT(ClientUrls(others, Peer(1)), ElementsAre("https://192.0.2.2:2379"));
}

TEST(EtcdPlan, OldSnapshotsGo) {
  EXPECT_EQ(SnapshotName(1769904000), "keelson-etcd-20260201T000000Z.db");
  const std::vector<std::string> names = {"keelson-etcd-20260203T000000Z.db",
                                          "keelson-etcd-20260201T000000Z.db",
                                          "keelson-etcd-20260202T000000Z.db",
                                          "mine.db",
                                          "keelson-etcd-x.db",
                                          "keelson-etcd-20260131T000000Z.db.part"};
  EXPECT_THAT(Outdated(names, 2), ElementsAre("keelson-etcd-20260201T000000Z.db"));
  EXPECT_THAT(Outdated(names, 3), IsEmpty());
  EXPECT_THAT(Outdated(names, 9), IsEmpty());
  EXPECT_THAT(Leftovers(names), ElementsAre("keelson-etcd-20260131T000000Z.db.part"));
}

TEST(EtcdSettings, AreTheFlagsOfTheUnit) {
  const EtcdSettings settings = ParseEtcdSettings(
      {"# a comment\nKUBE_CONTROLPLANE_CLUSTER_ARGS=\"--etcd-servers=https://package:2379\"\n",
       "KUBE_CONTROLPLANE_PKI_ARGS=\"--etcd-cafile=/"
       "a\"\nKUBE_CONTROLPLANE_CLUSTER_ARGS=\"--etcd-address=192.0.2.1 "
       "--etcd-name=cp-1 --etcd-address-like=x\"\n",
       "KUBE_CONTROLPLANE_ARGS=--etcd-cafile=/b\n"});
  EXPECT_TRUE(settings.found);
  EXPECT_THAT(settings.servers, IsEmpty()) << "a later file replaces the variable";
  EXPECT_EQ(settings.address, "192.0.2.1");
  EXPECT_EQ(settings.name, "cp-1");
  EXPECT_EQ(settings.ca_file, "/b") << "the last value counts";
  EXPECT_FALSE(ParseEtcdSettings({}).found);
}

TEST(EtcdSettings, LeadToEtcd) {
  MemoryHost host;
  const auto nothing = FindEtcd(host, {});
  EXPECT_EQ(nothing.error().code(), Code::kNotFound);
  EXPECT_THAT(nothing.error().message(), HasSubstr("give --endpoints"));

  // On the loopback interface: by the socket, with the certificates that kube-controlplane has made.
  const std::string data = paths::kEtcdData;
  host.files[data + "/etcd:0"] = {};
  for (const char* name : {"ca.crt", "client.crt", "client.key"}) {
    host.files[data + "/pki/" + name] = {name, 0600, ""};
  }
  const auto own = FindEtcd(host, {});
  ASSERT_TRUE(own) << own.error().message();
  EXPECT_THAT(own->endpoints, ElementsAre("unix://" + data + "/etcd:0"));
  EXPECT_EQ(own->credentials.ca_pem, "ca.crt");
  EXPECT_FALSE(own->chosen);

  // One that others can join.
  host.files[paths::kControlPlaneEnv] = {"KUBE_CONTROLPLANE_CLUSTER_ARGS=\"--etcd-address=fd00::1\"\n", 0644,
                                         ""};
  for (const char* name : {"ca.crt", "healthcheck-client.crt", "healthcheck-client.key"}) {
    host.files[std::string(paths::kPki) + "/etcd/" + name] = {name, 0600, ""};
  }
  const auto member = FindEtcd(host, {});
  ASSERT_TRUE(member) << member.error().message();
  EXPECT_THAT(member->endpoints, ElementsAre("https://[fd00::1]:2379"));
  EXPECT_EQ(member->credentials.key_pem, "healthcheck-client.key");

  // Elsewhere.
  host.files[paths::kControlPlaneEnv].text =
      "KUBE_CONTROLPLANE_CLUSTER_ARGS=\"--etcd-servers=https://a:2379,https://b:2379 --etcd-cafile=/ca\"\n";
  EXPECT_EQ(FindEtcd(host, {}).error().code(), Code::kNotFound) << "the CA's file is missing";
  host.files["/ca"] = {"other", 0644, ""};
  EXPECT_THAT(FindEtcd(host, {})->endpoints, ElementsAre("https://a:2379", "https://b:2379"));
  EXPECT_EQ(FindEtcd(host, {})->credentials.ca_pem, "other");
  const auto chosen = FindEtcd(host, {{"localhost:2379", "https://c:2379"}, "", "", ""});
  ASSERT_TRUE(chosen);
  EXPECT_TRUE(chosen->chosen);
  EXPECT_THAT(chosen->endpoints, ElementsAre("http://localhost:2379", "https://c:2379"));
}

TEST(EtcdReport, TellsWhatIsWrongAndTheFix) {
  EtcdView view = View(3, 1, {3});
  view.alarms = {{2, "NOSPACE"}};
  const std::string table = StatusTable(view);
  EXPECT_THAT(table, AllOf(HasSubstr("ENDPOINT"), HasSubstr("20 kB"), HasSubstr("does not answer"),
                           HasSubstr("[MemberUnreachable] member cp-3: cannot be reached\n"),
                           HasSubstr("[NOSPACE] member 2 has reached its quota"),
                           HasSubstr("'nodectl etcd defrag --disarm'")));
  EXPECT_THAT(ProblemsOf(View(3, 1)), IsEmpty());
  EXPECT_EQ(ProblemsOf(View(1, 0))[0].reason, "NoLeader");
  EXPECT_EQ(SizeText(1234567), "1.2 MB");
  EXPECT_EQ(SizeText(999), "999 B");
  EXPECT_THAT(MembersTable({Info(1, "cp-1"), Info(2, "", true)}),
              AllOf(HasSubstr("started"), HasSubstr("unstarted")));
}

}  // namespace
}  // namespace keelson::ctl
