// Node ports of several servers on one etcd.
#include "controlplane/registry/port_allocator.h"

#include <thread>

#include "controlplane/registry/testing/fixture.h"
#include "lib/api/codec/codec.h"

namespace keelson::registry {
namespace {

constexpr char kKey[] = "/registry/ranges/servicenodeports";

class PortAllocatorTest : public RegistryTest {
 protected:
  // A server of its own, with few ports.
  struct Server {
    Server(etcd::TestEtcd& etcd, int first, int last)
        : client(etcd.supervisor().client_options()), ranges(client, false), ports(ranges, first, last) {}
    etcd::Client client;
    storage::RangeAllocations ranges;
    PortAllocator ports;
  };
  corev1::RangeAllocation Stored() {
    corev1::RangeAllocation out;
    auto found = (*plane_).client().Range(kKey, {}, {});
    EXPECT_TRUE(found && found->kvs.size() == 1);
    if (!found || found->kvs.empty()) return out;
    EXPECT_TRUE(api::DecodeProtobuf(found->kvs[0].value, out));
    return out;
  }
  void Overwrite(const corev1::RangeAllocation& object) {
    auto found = (*plane_).client().Range(kKey, {}, {});
    ASSERT_TRUE(found);
    const int64_t revision = found->kvs.empty() ? 0 : found->kvs[0].mod_revision;
    ASSERT_TRUE((*plane_).client().PutIf(kKey, api::EncodeProtobuf(object, {"", "v1", "RangeAllocation"}),
                                         revision, 0, {}));
  }
};

TEST_F(PortAllocatorTest, TwoServersNeverGiveOnePort) {
  Server a(*etcd_, 30000, 30099), b(*etcd_, 30000, 30099);
  std::vector<int> got[2];
  auto take = [](Server& server, std::vector<int>& out) {
    while (Result<int> port = server.ports.Allocate(false, {})) out.push_back(*port);
  };
  std::jthread first([&] { take(a, got[0]); });
  take(b, got[1]);
  first.join();
  std::set<int> all(got[0].begin(), got[0].end());
  all.insert(got[1].begin(), got[1].end());
  EXPECT_EQ(all.size(), 100u) << "each port once, and every one";
  EXPECT_EQ(got[0].size() + got[1].size(), 100u);
  EXPECT_EQ(a.ports.Allocate(false, {}).error().message(), "range is full");

  b.ports.Release(30050);
  EXPECT_TRUE(a.ports.Claim(30050, true, {})) << "a dry run sees what another server released";
  EXPECT_TRUE(a.ports.Claim(30050, false, {}));
  const Result<> twice = b.ports.Claim(30050, false, {});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message(), "provided port is already allocated");
}

// As kube-apiserver stores it: big.Int's bytes.
TEST_F(PortAllocatorTest, StoresUpstreamsBitmap) {
  Server server(*etcd_, 30000, 32767);
  for (int port : {30000, 30009, 32767}) ASSERT_TRUE(server.ports.Claim(port, false, {}));
  EXPECT_EQ(Stored().range(), "30000-32767");
  EXPECT_EQ(Stored().data(), "\x80" + std::string(343, '\0') + "\x02\x01");
  server.ports.Release(32767);
  EXPECT_EQ(Stored().data(), "\x02\x01");
}

TEST_F(PortAllocatorTest, ReadsWhatUpstreamStored) {
  corev1::RangeAllocation object;
  object.set_range("30000-32767");
  object.set_data("\x08");
  Overwrite(object);
  Server server(*etcd_, 30000, 32767);
  EXPECT_FALSE(server.ports.Claim(30003, false, {}));
  EXPECT_TRUE(server.ports.Claim(30004, false, {}));
  EXPECT_EQ(Stored().data(), "\x18");
}

TEST_F(PortAllocatorTest, RepairMends) {
  Server server(*etcd_, 30000, 30099);
  ASSERT_TRUE(server.ports.Claim(30001, false, {}));  // its Service was never stored
  ASSERT_TRUE(server.ports.Claim(30002, false, {}));
  auto reconcile = [&](std::set<int> used) {
    Result<std::set<int>> unknown = server.ports.Reconcile(used, {});
    EXPECT_TRUE(unknown) << unknown.error().message();
    return unknown ? *unknown : std::set<int>();
  };
  EXPECT_EQ(reconcile({30002, 30003, 80}), (std::set<int>{30003})) << "taken, and out of range";
  EXPECT_EQ(reconcile({30002, 30003}), std::set<int>());
  EXPECT_FALSE(server.ports.Claim(30001, false, {})) << "a write may still be in progress";
  EXPECT_EQ(reconcile({30002, 30003}), std::set<int>());
  EXPECT_EQ(Stored().data(), "\x0c");
  EXPECT_TRUE(server.ports.Claim(30001, false, {}));
}

TEST_F(PortAllocatorTest, AnotherRangeBeginsEmpty) {
  Server before(*etcd_, 30000, 30099);
  ASSERT_TRUE(before.ports.Claim(30001, false, {}));
  Server after(*etcd_, 30001, 31000);
  ASSERT_TRUE(after.ports.Reconcile({30005}, {}));
  EXPECT_TRUE(after.ports.Claim(30002, false, {}));
  EXPECT_FALSE(after.ports.Claim(30005, false, {}));
  EXPECT_EQ(Stored().range(), "30001-31000");
}

TEST_F(PortAllocatorTest, DamageIsAnErrorAndNotAnEmptyRange) {
  ASSERT_TRUE((*plane_).client().PutIf(kKey, "damaged", 0, 0, {}));
  Server server(*etcd_, 30000, 30099);
  Result<int> port = server.ports.Allocate(false, {});
  ASSERT_FALSE(port);
  EXPECT_TRUE(port.error().Is(Code::kInternal));
}

// Two whole servers: Services of both, with given and with chosen ports.
TEST_F(PortAllocatorTest, ServicesOfTwoServers) {
  Plane other(*etcd_);
  corev1::Service service = Service("a");
  service.mutable_spec()->set_type("NodePort");
  service.mutable_spec()->mutable_ports(0)->set_node_port(30321);
  ASSERT_TRUE(Create(service));
  service.mutable_metadata()->set_name("b");
  auto refused =
      other->Create(Row<corev1::Service>(), "default", "", std::make_unique<corev1::Service>(service), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(),
            "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: 30321: provided port is "
            "already allocated");
  ASSERT_TRUE(Delete(Row<corev1::Service>(), "a"));
  EXPECT_TRUE(
      other->Create(Row<corev1::Service>(), "default", "", std::make_unique<corev1::Service>(service), {}));
}

}  // namespace
}  // namespace keelson::registry
