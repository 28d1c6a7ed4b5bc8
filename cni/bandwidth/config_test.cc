#include "cni/bandwidth/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/lib/json.h"

namespace keelson::cni {
namespace {

using ::testing::HasSubstr;

Outcome<BandwidthConfig> Read(const std::string& fields) {
  Request request;
  request.config = *ParseJson("{" + fields + "}", "test");
  return ReadBandwidthConfig(request);
}

TEST(BandwidthConfig, FieldsAtTheTopGoBeforeTheRuntimes) {
  auto both = Read(R"("ingressRate":800,"ingressBurst":80,
                      "runtimeConfig":{"bandwidth":{"egressRate":1600,"egressBurst":160}})");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->ingress.rate, 800u);
  EXPECT_EQ(both->egress.rate, 0u);
  auto runtime = Read(R"("runtimeConfig":{"bandwidth":{"egressRate":1600,"egressBurst":4294967295}})");
  ASSERT_TRUE(runtime);
  EXPECT_EQ(runtime->ingress.rate, 0u);
  EXPECT_EQ(runtime->egress.burst, 4294967295u);
  EXPECT_EQ(Read("")->egress.rate, 0u);
}

TEST(BandwidthConfig, RefusesWithACodeWhatItCannotDo) {
  struct {
    const char* fields;
    int code;
    const char* message;
  } cases[] = {
      {R"("ingressRate":800)", kInvalidConfig, "if rate is set, burst must also be set"},
      {R"("egressBurst":800)", kInvalidConfig, "if burst is set, rate must also be set"},
      {R"("egressRate":800,"egressBurst":34359738368)", kInvalidConfig, "burst cannot be more than 4GB"},
      {R"("egressRate":7,"egressBurst":80)", kInvalidConfig, "below one byte"},
      {R"("egressRate":-8,"egressBurst":80)", kDecodingFailure, "egressRate"},
      {R"("egressRate":"8","egressBurst":80)", kDecodingFailure, "egressRate"},
      {R"("egressRate":8.5,"egressBurst":80)", kDecodingFailure, "egressRate"},
      {R"("runtimeConfig":{"bandwidth":[]})", kDecodingFailure, "bandwidth"},
      {R"("runtimeConfig":{"bandwidth":{"shapedSubnets":["10.0.0.0/8"]}})", kUnsupportedField,
       "shapedSubnets"},
  };
  for (const auto& c : cases) {
    auto config = Read(c.fields);
    ASSERT_FALSE(config) << c.fields;
    EXPECT_EQ(config.error().code, c.code) << c.fields;
    EXPECT_THAT(config.error().message, HasSubstr(c.message));
  }
}

TEST(BandwidthConfig, BucketsAreInBytesAndHoldAPacket) {
  netlink::TokenBucket bucket = BucketFor({.rate = 80'000'000, .burst = 8'000'000}, 1500);
  EXPECT_EQ(bucket.rate, 10'000'000u);
  EXPECT_EQ(bucket.burst, 1'000'000u);
  EXPECT_EQ(bucket.limit, 1'250'000u);  // 25 ms of data, plus the burst
  EXPECT_EQ(BucketFor({.rate = 8000, .burst = 8}, 1500).burst, 1514u);
  netlink::TokenBucket huge = BucketFor({.rate = UINT64_MAX, .burst = 34'359'738'359}, 1500);
  EXPECT_EQ(huge.limit, UINT32_MAX);
  EXPECT_EQ(huge.rate, UINT64_MAX / 8);
}

TEST(BandwidthConfig, DevicesAreNamedByAttachment) {
  Request a, b, c;
  a.network = b.network = "net";
  c.network = "other";
  a.container_id = b.container_id = c.container_id = "id";
  a.ifname = c.ifname = "eth0";
  b.ifname = "eth1";
  EXPECT_EQ(IfbName(a).size(), 15u);
  EXPECT_EQ(IfbName(a), IfbName(a));
  EXPECT_NE(IfbName(a), IfbName(b));
  EXPECT_NE(IfbName(a), IfbName(c));
}

}  // namespace
}  // namespace keelson::cni
