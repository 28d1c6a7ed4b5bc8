#include "kubelet/cm/dra/prepare.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

namespace resourcev1 = api::resource::v1;

template <typename T>
T Parse(const std::string& json) {
  T object;
  EXPECT_TRUE(api::DecodeJson(json, object)) << json;
  return object;
}

class PrepareTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, const std::string& rest) {
    claims_[name] =
        Parse<resourcev1::ResourceClaim>(R"({"metadata":{"name":")" + name +
                                         R"(","namespace":"default","uid":"u-)" + name + "\"" + rest + "}");
  }
  std::string Prepare(const std::string& pod) {
    const Result<> prepared = PrepareDynamicResources(
        Parse<corev1::Pod>(R"({"metadata":{"name":"p","namespace":"default","uid":"u1"},)" + pod + "}"),
        [this](const std::string& ns, const std::string& name) -> Result<resourcev1::ResourceClaim> {
          EXPECT_EQ(ns, "default");
          if (const auto it = claims_.find(name); it != claims_.end()) return it->second;
          return Error(Code::kNotFound, "resourceclaims.resource.k8s.io \"" + name + "\" not found");
        });
    return prepared ? "" : prepared.error().message();
  }

  std::map<std::string, resourcev1::ResourceClaim> claims_;
};

constexpr char kNamed[] = R"("spec":{"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}]})";
constexpr char kReserved[] = R"("reservedFor":[{"resource":"pods","name":"p","uid":"u1"}])";

TEST_F(PrepareTest, APodWithoutClaimsStarts) { EXPECT_EQ(Prepare(R"("spec":{})"), ""); }

TEST_F(PrepareTest, AClaimHasToBeThereReservedAndAllocated) {
  EXPECT_EQ(Prepare(kNamed), "fetch ResourceClaim c: resourceclaims.resource.k8s.io \"c\" not found");
  Put("c", "}");
  EXPECT_EQ(Prepare(kNamed), "pod p (u1) is not allowed to use ResourceClaim c (u-c)");
  Put("c", std::string("},\"status\":{") + kReserved + "}");
  EXPECT_EQ(Prepare(kNamed), "ResourceClaim c: not allocated");
}

TEST_F(PrepareTest, NoDriverIsRegistered) {
  const std::string allocated = R"("allocation":{"devices":{"results":[
      {"request":"r","driver":"gpu.example.com","pool":"n1","device":"d1"}]}})";
  Put("c", "},\"status\":{" + allocated + "}");
  EXPECT_EQ(Prepare(kNamed), "pod p (u1) is not allowed to use ResourceClaim c (u-c)");
  Put("c", "},\"status\":{" + allocated + "," + kReserved + "}");
  EXPECT_EQ(Prepare(kNamed), "DRA driver gpu.example.com is not registered");
  Put("c", std::string(R"(},"status":{"allocation":{},)") + kReserved + "}");
  EXPECT_EQ(Prepare(kNamed), "");  // no device, no driver
}

TEST_F(PrepareTest, AGeneratedClaimIsOfThisPod) {
  const std::string spec = R"("spec":{"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"t"}]})";
  EXPECT_EQ(Prepare(spec), "Pod default/p: ResourceClaim not created yet");
  const std::string status =
      R"(,"status":{"resourceClaimStatuses":[{"name":"gpu","resourceClaimName":"c"}]})";
  Put("c", std::string("},\"status\":{\"allocation\":{},") + kReserved + "}");
  EXPECT_EQ(Prepare(spec + status),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)");
  Put("c",
      R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1","controller":true}]},
         "status":{"allocation":{},)" +
          std::string(kReserved) + "}");
  EXPECT_EQ(Prepare(spec + status), "");
  // An entry whose status names no claim needs none.
  EXPECT_EQ(Prepare(spec + R"(,"status":{"resourceClaimStatuses":[{"name":"gpu"}]})"), "");
}

TEST_F(PrepareTest, TheClaimOfExtendedResourcesCountsToo) {
  EXPECT_EQ(Prepare(R"("spec":{},"status":{"extendedResourceClaimStatus":{"resourceClaimName":"x"}})"),
            "fetch ResourceClaim x: resourceclaims.resource.k8s.io \"x\" not found");
}

}  // namespace
}  // namespace keelson::kubelet
