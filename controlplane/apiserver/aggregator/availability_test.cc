// The condition Available: what the cluster's objects say, and how it is written.
#include "controlplane/apiserver/aggregator/availability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/admission/testing/object_store.h"

namespace keelson::apiserver {
namespace {

ApiServiceEntry Entry(const std::string& service, int32_t port = 443) {
  ApiServiceEntry out;
  out.name = "v1.example.com";
  out.local = false;
  out.service_ns = "ns";
  out.service_name = service;
  out.service_port = port;
  return out;
}

class AvailabilityTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    store_ = new ObjectStore;
    for (const char* name : {"good", "bare", "unready", "other-port"}) {
      store_->Put<corev1::Service>(R"({"metadata":{"name":")" + std::string(name) +
                                   R"(","namespace":"ns"},"spec":{"type":"ClusterIP","clusterIP":"10.96.0.7",
          "ports":[{"name":"https","port":443}]}})");
    }
    store_->Put<corev1::Service>(R"({"metadata":{"name":"away","namespace":"ns"},
        "spec":{"type":"ExternalName","externalName":"example.com"}})");
    Slice("good", "https", true);
    Slice("unready", "https", false);
    Slice("other-port", "metrics", true);
  }
  static void TearDownTestSuite() { delete store_; }
  static void Slice(const std::string& of, const std::string& port, bool ready) {
    store_->Put<discoveryv1::EndpointSlice>(
        R"({"metadata":{"name":")" + of + R"(","namespace":"ns","labels":{"kubernetes.io/service-name":")" +
        of + R"("}},"addressType":"IPv4","ports":[{"name":")" + port +
        R"(","port":8443}],"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":)" +
        (ready ? "true" : "false") + "}}]}");
  }
  static Availability Check(const ApiServiceEntry& entry) { return CheckService(store_->get(), entry); }

  inline static ObjectStore* store_;
};

TEST_F(AvailabilityTest, WhatTheServiceSays) {
  EXPECT_EQ(Check(Entry("good")), Availability::Passed());
  EXPECT_EQ(Check(Entry("away")), Availability::Passed());
  EXPECT_EQ(Check(Entry("none")),
            (Availability{"False", "ServiceNotFound", "service/none in \"ns\" is not present"}));
  EXPECT_EQ(
      Check(Entry("good", 8443)),
      (Availability{"False", "ServicePortError", "service/good in \"ns\" is not listening on port 8443"}));
  EXPECT_EQ(Check(Entry("bare")), (Availability{"False", "EndpointsNotFound",
                                                "cannot find endpointslices for service/bare in \"ns\""}));
  for (const char* name : {"unready", "other-port"}) {
    EXPECT_EQ(Check(Entry(name)),
              (Availability{"False", "MissingEndpoints",
                            "endpointslices for service/" + std::string(name) +
                                " in \"ns\" have no addresses with port name \"https\""}));
  }
}

TEST(SetAvailable, KeepsTheTimeOfTheTransition) {
  apiregistrationv1::APIService service;
  const WallTime first = WallTime() + std::chrono::hours(1), later = first + std::chrono::hours(1);
  EXPECT_TRUE(SetAvailable(service, {"False", "ServiceNotFound", "a"}, first));
  EXPECT_FALSE(SetAvailable(service, {"False", "ServiceNotFound", "a"}, later));
  EXPECT_TRUE(SetAvailable(service, {"False", "MissingEndpoints", "b"}, later));
  ASSERT_EQ(service.status().conditions_size(), 1);
  const auto& condition = service.status().conditions(0);
  EXPECT_EQ(condition.type(), "Available");
  EXPECT_EQ(condition.reason(), "MissingEndpoints");
  EXPECT_EQ(condition.last_transition_time().seconds(), 3600);
  EXPECT_FALSE(ToEntry(service)->available);
  EXPECT_TRUE(SetAvailable(service, Availability::Passed(), later));
  EXPECT_EQ(service.status().conditions(0).last_transition_time().seconds(), 7200);
  EXPECT_TRUE(ToEntry(service)->available);
}

}  // namespace
}  // namespace keelson::apiserver
