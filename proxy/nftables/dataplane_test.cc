#include "proxy/nftables/dataplane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "lib/nft/diff.h"
#include "lib/nft/testing/fake.h"
#include "lib/nft/text.h"
#include "proxy/nftables/testing/resolved_ports.h"

namespace keelson::proxy::nftables {
namespace {

using ::testing::HasSubstr;

// Refuses transactions with one address.
class PickyKernel : public nft::FakeKernel {
 public:
  Result<> Apply(const nft::Transaction& t) override {
    ++attempts;
    std::string text = nft::ToText(t);
    if (failures > 0 || text.size() > most) {
      failures = std::max(0, failures - 1);
      return Error::FromErrno(failure, "batch");
    }
    if (!bad.empty() && text.find("add element services") != std::string::npos &&
        text.find(bad) != std::string::npos && text.find("delete table") == std::string::npos) {
      return Error::FromErrno(EINVAL, "add element services { " + bad + " . tcp . 80 }");
    }
    return FakeKernel::Apply(t);
  }
  std::string bad;
  int failures = 0, failure = ENOBUFS, attempts = 0;
  size_t most = SIZE_MAX;  // bytes of text that are taken at once
};

TEST(Dataplane, LeavesOutTheOneThatTheKernelRefuses) {
  auto fake = std::make_unique<PickyKernel>();
  PickyKernel& kernel = *fake;
  Dataplane dataplane(std::move(fake), Options{});
  kernel.bad = "10.96.0.37";
  for (int i = 0; i < 64; ++i) {
    std::string ip = "10.96.0." + std::to_string(i);
    dataplane.plan().SetService("default/web-" + std::to_string(i), {Port(ip.c_str(), {"10.1.0.1"})});
  }
  auto synced = dataplane.Sync();
  ASSERT_TRUE(synced) << synced.error().message();
  ASSERT_EQ(synced->refusals.size(), 1u);
  EXPECT_EQ(synced->refusals[0].service, "default/web-37");
  EXPECT_THAT(synced->refusals[0].error.message(), HasSubstr("10.96.0.37"));
  EXPECT_LT(kernel.attempts, 40);
  EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["services"].elements.size(), 63u);
  EXPECT_EQ(dataplane.plan().Held(), std::vector<std::string>{"default/web-37"});

  // Others go on; it is tried again when it changes, or when asked for.
  dataplane.plan().SetService("default/more", {Port("10.96.1.1", {"10.1.0.1"})});
  synced = dataplane.Sync();
  ASSERT_TRUE(synced);
  EXPECT_TRUE(synced->refusals.empty());
  dataplane.OnPeriod();
  EXPECT_EQ(dataplane.Sync()->refusals.size(), 1u);
  kernel.bad.clear();
  dataplane.OnPeriod();
  EXPECT_TRUE(dataplane.Sync()->refusals.empty());
  EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["services"].elements.size(), 65u);
}

TEST(Dataplane, FailuresThatPassBlameNobody) {
  for (int failure : {EINTR, EAGAIN, EBUSY, ENOBUFS, ENOMEM, EMSGSIZE}) {
    auto fake = std::make_unique<PickyKernel>();
    PickyKernel& kernel = *fake;
    kernel.failure = failure;
    Dataplane dataplane(std::move(fake), Options{});
    ASSERT_TRUE(dataplane.Sync());
    dataplane.plan().SetService("default/web", {Port("10.96.0.1", {"10.1.0.1"})});
    kernel.failures = 1;
    EXPECT_TRUE(dataplane.Sync()) << failure;  // looked again at once
    dataplane.plan().SetService("default/web-2", {Port("10.96.0.2", {"10.1.0.1"})});
    kernel.failures = 1000;
    EXPECT_EQ(dataplane.Sync().error().errnum(), failure);
    EXPECT_TRUE(dataplane.plan().Held().empty()) << failure;
    kernel.failures = 0;
    EXPECT_TRUE(dataplane.Sync()) << failure;
    EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["services"].elements.size(), 2u) << failure;
  }
}

TEST(Dataplane, WhatIsTooMuchAtOnceIsWrittenInParts) {
  for (int failure : {ENOBUFS, ENOMEM, EMSGSIZE}) {
    auto fake = std::make_unique<PickyKernel>();
    PickyKernel& kernel = *fake;
    kernel.failure = failure;
    Dataplane dataplane(std::move(fake), Options{});
    ASSERT_TRUE(dataplane.Sync());
    auto service = [](int i) {
      ResolvedPort port = Port("10.96.0.1", {"10.1.0.1"});
      port.service.cluster_ip = Ip("10.96.0.1").Plus(i);
      return std::vector{port};
    };
    for (int i = 0; i < 64; ++i) dataplane.plan().SetService("default/web-" + std::to_string(i), service(i));
    kernel.most = 2000;
    auto synced = dataplane.Sync();
    ASSERT_TRUE(synced) << synced.error().message();
    EXPECT_TRUE(synced->refusals.empty());
    EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["services"].elements.size(), 64u);
    // One that is too much by itself is nobody's fault; the others stay.
    dataplane.plan().SetService("default/more", service(100));
    kernel.most = 10;
    EXPECT_EQ(dataplane.Sync().error().errnum(), failure);
    EXPECT_TRUE(dataplane.plan().Held().empty());
    EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["services"].elements.size(), 64u);
    kernel.most = SIZE_MAX;
    ASSERT_TRUE(dataplane.Sync());
    EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["services"].elements.size(), 65u);
  }
}

TEST(Dataplane, RestartFindsItsOwnAndRepairsWhatOthersDid) {
  auto fake = std::make_unique<nft::FakeKernel>();
  nft::FakeKernel& kernel = *fake;
  Dataplane dataplane(std::move(fake), Options{});
  dataplane.plan().SetService("default/web", {Port("10.96.0.1", {"10.1.0.1"})});
  ASSERT_TRUE(dataplane.Sync());
  EXPECT_EQ(dataplane.Verify()->operations, 0u);
  nft::Transaction meddle(Options{}.Table());
  nft::Set endpoints = SetOf(kEndpoints, true);
  meddle.DeleteElements(endpoints,
                        {{.key = nft::Key().Ip(Ip("10.96.0.1")).Proto(6).Port(80).Mark(0).bytes()}});
  ASSERT_TRUE(kernel.Apply(meddle));
  EXPECT_EQ(dataplane.Verify()->operations, 1u);
  EXPECT_EQ(kernel.Read(Options{}.Table())->value().sets["endpoints"].elements.size(), 1u);
}

}  // namespace
}  // namespace keelson::proxy::nftables
