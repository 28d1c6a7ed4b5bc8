// With a plugin of the test's own, behind a socket as a real one.
#include "controlplane/storage/encryption/kms.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <grpcpp/grpcpp.h>

#include "lib/base/mutex.h"
#include "lib/metrics/metrics.h"
#include "lib/rpc/proto/kms.grpc.pb.h"

namespace keelson::storage {
namespace {

// "Encrypts" by naming the key and flipping bits.
class Plugin : public v2::KeyManagementService::Service {
 public:
  grpc::Status Status(grpc::ServerContext*, const v2::StatusRequest*, v2::StatusResponse* reply) override {
    MutexLock lock(mutex_);
    reply->set_version("v2");
    reply->set_healthz(healthz_);
    reply->set_key_id(key_);
    return grpc::Status::OK;
  }
  grpc::Status Encrypt(grpc::ServerContext*, const v2::EncryptRequest* request,
                       v2::EncryptResponse* reply) override {
    MutexLock lock(mutex_);
    ++encrypts_;
    reply->set_key_id(key_);
    reply->set_ciphertext(Flip(request->plaintext()));
    (*reply->mutable_annotations())["version.kms.example.com"] = "1";
    return grpc::Status::OK;
  }
  grpc::Status Decrypt(grpc::ServerContext*, const v2::DecryptRequest* request,
                       v2::DecryptResponse* reply) override {
    MutexLock lock(mutex_);
    ++decrypts_;
    if (request->annotations().count("version.kms.example.com") == 0) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no annotation");
    }
    reply->set_plaintext(Flip(request->ciphertext()));
    return grpc::Status::OK;
  }

  void Set(std::string key, std::string healthz = "ok") {
    MutexLock lock(mutex_);
    key_ = std::move(key);
    healthz_ = std::move(healthz);
  }
  int encrypts() {
    MutexLock lock(mutex_);
    return encrypts_;
  }
  int decrypts() {
    MutexLock lock(mutex_);
    return decrypts_;
  }

 private:
  static std::string Flip(std::string bytes) {
    for (char& c : bytes) c = static_cast<char>(~c);
    return bytes;
  }

  Mutex mutex_;
  std::string key_ KEELSON_GUARDED_BY(mutex_) = "key-1", healthz_ KEELSON_GUARDED_BY(mutex_) = "ok";
  int encrypts_ KEELSON_GUARDED_BY(mutex_) = 0, decrypts_ KEELSON_GUARDED_BY(mutex_) = 0;
};

class Kms : public testing::Test {
 protected:
  Kms() : endpoint_("unix:///tmp/keelson-kms-" + std::to_string(getpid()) + ".sock") {}
  void StartPlugin() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(endpoint_, grpc::InsecureServerCredentials());
    builder.RegisterService(&plugin_);
    server_ = builder.BuildAndStart();
    ASSERT_TRUE(server_);
  }
  void SetUp() override { StartPlugin(); }
  void TearDown() override {
    if (server_) server_->Shutdown();
    unlink(endpoint_.c_str() + 7);
  }
  KmsTransformer::Options Options() const { return {"vault", endpoint_, std::chrono::seconds(3)}; }

  const std::string endpoint_, place_ = "/registry/secrets/default/a";
  Plugin plugin_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(Kms, OneSeedForManyValues) {
  KmsTransformer kms(Options());
  EXPECT_EQ(kms.ToStorage("x", place_).error().code(), Code::kUnavailable);
  ASSERT_TRUE(kms.Probe());
  EXPECT_TRUE(kms.Health());
  for (std::string plain : {"secret one", "secret two", ""}) {
    auto sealed = kms.ToStorage(plain, place_);
    ASSERT_TRUE(sealed) << sealed.error().message();
    EXPECT_EQ(sealed->find("secret"), std::string::npos);
    auto opened = kms.FromStorage(*sealed, place_);
    ASSERT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(opened->bytes, plain);
    EXPECT_FALSE(opened->stale);
    // Bound to its place.
    EXPECT_FALSE(kms.FromStorage(*sealed, "/registry/secrets/default/b"));
  }
  ASSERT_TRUE(kms.Probe());
  EXPECT_EQ(plugin_.encrypts(), 1);
  EXPECT_EQ(plugin_.decrypts(), 0);
  const std::string text = metrics::Print();
  for (const char* series :
       {"apiserver_envelope_encryption_kms_operations_latency_seconds_count{provider_name=\"vault\",method_"
        "name="
        "\"/v2.KeyManagementService/Encrypt\",grpc_status_code=\"OK\"} ",
        "apiserver_envelope_encryption_key_id_hash_total{transformation_type=\"to_storage\",provider_name="
        "\"vault\","
        "key_id_hash=\"sha256:",
        "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{provider_name=\"vault\"",
        "apiserver_storage_data_key_generation_duration_seconds_count "}) {
    EXPECT_NE(text.find(series), std::string::npos) << series;
  }
}

TEST_F(Kms, ANewKeyMakesValuesStale) {
  KmsTransformer kms(Options());
  ASSERT_TRUE(kms.Probe());
  auto old = kms.ToStorage("plain", place_);
  ASSERT_TRUE(old);
  plugin_.Set("key-2");
  ASSERT_TRUE(kms.Probe());
  auto opened = kms.FromStorage(*old, place_);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->bytes, "plain");
  EXPECT_TRUE(opened->stale);
  EXPECT_FALSE(kms.FromStorage(*kms.ToStorage("plain", place_), place_)->stale);
  // Another server asks the plugin once for each seed.
  KmsTransformer other(Options());
  ASSERT_TRUE(other.Probe());
  int before = plugin_.decrypts();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(other.FromStorage(*old, place_));
  EXPECT_EQ(plugin_.decrypts(), before + 1);
}

TEST_F(Kms, WithoutThePlugin) {
  FakeClock clock;
  KmsTransformer kms(Options(), clock);
  ASSERT_TRUE(kms.Probe());
  auto sealed = kms.ToStorage("plain", place_);
  ASSERT_TRUE(sealed);
  plugin_.Set("key-1", "out of paper");
  EXPECT_EQ(kms.Probe().error().message(), "KMS provider vault: got unexpected healthz status: out of paper");
  EXPECT_FALSE(kms.Health());
  server_->Shutdown();
  server_.reset();
  EXPECT_FALSE(kms.Probe());
  // For a while things go on with the seed that there is, then writes do not.
  EXPECT_TRUE(kms.ToStorage("plain", place_));
  clock.Advance(std::chrono::minutes(4));
  EXPECT_EQ(kms.ToStorage("plain", place_).error().code(), Code::kUnavailable);
  EXPECT_EQ(kms.FromStorage(*sealed, place_)->bytes, "plain");
  KmsTransformer other(Options());
  EXPECT_EQ(other.FromStorage(*sealed, place_).error().code(), Code::kUnavailable);
  EXPECT_EQ(other.FromStorage("junk", place_).error().code(), Code::kInternal);
}

}  // namespace
}  // namespace keelson::storage
