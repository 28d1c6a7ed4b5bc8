// Ciphers against each other and against fixed bytes; a store whose secrets etcd cannot read.
#include "controlplane/storage/encryption.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <future>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "controlplane/etcd/testing/test_etcd.h"
#include "controlplane/storage/store.h"
#include "lib/base/file.h"

namespace keelson::storage {
namespace {

const std::string kPlace = "/registry/secrets/default/a";

std::string Bytes(size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(i);
  return out;
}

std::string Unhex(const std::string& hex) {
  std::string out(hex.size() / 2, '\0');
  sodium_hex2bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), hex.data(), hex.size(), nullptr,
                 nullptr, nullptr);
  return out;
}

TEST(Ciphers, RoundTripAndJunk) {
  struct Case {
    const char* name;
    TransformerPtr transformer;
    bool bound, authenticated;
  };
  const Case cases[] = {
      {"cbc16", NewAesCbc(Bytes(16)), false, false},
      {"cbc24", NewAesCbc(Bytes(24)), false, false},
      {"cbc32", NewAesCbc(Bytes(32)), false, false},
      {"gcm16", NewAesGcm(Bytes(16)), true, true},
      {"gcm24", NewAesGcm(Bytes(24)), true, true},
      {"gcm32", NewAesGcm(Bytes(32)), true, true},
      {"secretbox", NewSecretbox(Bytes(32)), false, true},
      {"derived", NewDerivedAesGcm(Bytes(32)), true, true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const Transformer& transformer = *one.transformer;
    for (size_t size : {0, 1, 15, 16, 17, 1000}) {
      std::string plain = Bytes(size);
      auto sealed = transformer.ToStorage(plain, kPlace), again = transformer.ToStorage(plain, kPlace);
      ASSERT_TRUE(sealed && again);
      EXPECT_NE(*sealed, *again) << "no two values are alike";
      auto opened = transformer.FromStorage(*sealed, kPlace);
      ASSERT_TRUE(opened) << opened.error().message();
      EXPECT_EQ(opened->bytes, plain);
      EXPECT_EQ(transformer.FromStorage(*sealed, kPlace + "2").has_value(), !one.bound);
      for (size_t cut = 0; cut < sealed->size(); ++cut) {
        (void)transformer.FromStorage(sealed->substr(0, cut), kPlace);
      }
      if (!one.authenticated) continue;
      for (size_t i = 0; i < sealed->size(); i += 7) {
        std::string bad = *sealed;
        bad[i] = static_cast<char>(bad[i] ^ 1);
        EXPECT_FALSE(transformer.FromStorage(bad, kPlace)) << i;
      }
    }
  }
}

// From openssl enc, and from the tables of the paper that GCM is from.
TEST(Ciphers, ReadWhatOthersWrote) {
  // AES-256-CBC of "keelson" under key 00..1f and IV 00..0f.
  auto cbc = NewAesCbc(Bytes(32))->FromStorage(Bytes(16) + Unhex("3982cbe7fafe86cf191ba749f2c8c4b8"), "");
  ASSERT_TRUE(cbc) << cbc.error().message();
  EXPECT_EQ(cbc->bytes, "keelson");
  auto gcm = NewAesGcm(Unhex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"))
                 ->FromStorage(Unhex("cafebabefacedbaddecaf888"
                                     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                                     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
                                     "76fc6ece0f4e1768cddf8853bb2d551b"),
                               Unhex("feedfacedeadbeeffeedfacedeadbeefabaddad2"));
  ASSERT_TRUE(gcm) << gcm.error().message();
  EXPECT_EQ(gcm->bytes, Unhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                              "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"));
}

TEST(Prefixes, FirstWritesAllRead) {
  TransformerPtr old_only = NewPrefixTransformers({{"old:", NewAesGcm(Bytes(16))}}, "none");
  TransformerPtr both = NewPrefixTransformers(
      {{"new:", NewSecretbox(Bytes(32))}, {"old:", NewAesGcm(Bytes(16))}, {"", NewIdentity()}}, "none");
  std::string old_value = *old_only->ToStorage("plain", kPlace),
              new_value = *both->ToStorage("plain", kPlace);
  EXPECT_EQ(new_value.substr(0, 4), "new:");
  EXPECT_TRUE(both->FromStorage(old_value, kPlace)->stale);
  EXPECT_FALSE(both->FromStorage(new_value, kPlace)->stale);
  EXPECT_TRUE(both->FromStorage("in the clear", kPlace)->stale);
  EXPECT_EQ(old_only->FromStorage(new_value, kPlace).error().message(), "none");
  EXPECT_EQ(both->FromStorage("k8s:enc:aescbc:v1:x:abc", kPlace).error().message(), "none");
  EXPECT_EQ(NewIdentity()->FromStorage("k8s:enc:aescbc:v1:x:abc", kPlace).error().message(),
            "identity transformer tried to read encrypted data");
}

// A rule that came before the definition holds for the objects of every version.
TEST(CustomResources, TheMostPreciseRuleHolds) {
  char dir[] = "/tmp/keelson-encryption-XXXXXX";
  ASSERT_TRUE(mkdtemp(dir));
  const std::string path = std::string(dir) + "/config";
  auto row = [](std::string_view group, std::string_view resource, std::string_view prefix) {
    api::ResourceInfo info{};
    info.group = group;
    info.version = "v1";
    info.resource = resource;
    info.message = api::kCustomMessage;
    info.etcd_prefix = prefix;
    return info;
  };
  const api::ResourceInfo foos = row("example.com", "foos", "/registry/example.com/foos/"),
                          bars = row("example.com", "bars", "/registry/example.com/bars/"),
                          others = row("example.org", "foos", "/registry/example.org/foos/");
  struct Case {
    const char *name, *resources;  // of one rule each, with keys a, b, c
    std::string foos, bars, others;
  };
  const Case cases[] = {
      {"by name", "foos.example.com", "a", "", ""},
      {"by group", "'*.example.com'", "a", "a", ""},
      {"all", "'*.*'", "a", "a", "a"},
      {"built-in resources only", "secrets", "", "", ""},
      {"the core group only", "'*.'", "", "", ""},
      {"name before group before all", "foos.example.com '*.example.com' '*.*'", "a", "b", "c"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    std::string config =
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";
    char key = 'a';
    std::istringstream words(one.resources);
    for (std::string resource; words >> resource; ++key) {
      config += fmt::format(
          "- resources: [{}]\n  providers:\n  - aesgcm: {{keys: [{{name: {}, secret: "
          "AAECAwQFBgcICQoLDA0ODw==}}]}}\n",
          resource, key);
    }
    ASSERT_TRUE(WriteFileAtomic(path, config));
    auto encryption = Encryption::Load(path);
    ASSERT_TRUE(encryption) << encryption.error().message();
    const std::pair<const api::ResourceInfo*, const std::string*> all[] = {
        {&foos, &one.foos}, {&bars, &one.bars}, {&others, &one.others}};
    for (const auto& [info, wanted] : all) {
      SCOPED_TRACE(info->etcd_prefix);
      TransformerPtr transformer = (*encryption)->Of(*info);
      ASSERT_EQ(transformer != nullptr, !wanted->empty());
      if (!transformer) continue;
      const std::string place = std::string(info->etcd_prefix) + "default/a";
      auto sealed = transformer->ToStorage("{}", place);
      ASSERT_TRUE(sealed) << sealed.error().message();
      EXPECT_TRUE(sealed->starts_with("k8s:enc:aesgcm:v1:" + *wanted + ":")) << *sealed;
      EXPECT_EQ(transformer->FromStorage(*sealed, place)->bytes, "{}");
      EXPECT_FALSE(transformer->FromStorage(*sealed, place + "b")) << "bound to its key";
      EXPECT_FALSE(transformer->FromStorage("{}", place)) << "no identity provider: plain values are refused";
      EXPECT_EQ((*encryption)->Of(*info), transformer) << "made once";
    }
  }
  ASSERT_TRUE(RemoveTree(dir));
}

// A store with encryption on an etcd of its own.
class EncryptedStore : public testing::Test {
 protected:
  static constexpr const char* kKey1 = "AAECAwQFBgcICQoLDA0ODw==";
  static constexpr const char* kKey2 = "EBESExQVFhcYGRobHB0eHw==";

  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    char dir[] = "/tmp/keelson-encryption-XXXXXX";
    dir_ = mkdtemp(dir);
    etcd_ = std::make_unique<etcd::TestEtcd>();
    client_ = std::make_shared<etcd::Client>(etcd_->supervisor().client_options());
  }
  void TearDown() override {
    if (!etcd_) return;
    Stop();
    ASSERT_TRUE(RemoveTree(dir_));
  }

  static std::string Gcm(const std::string& name, const char* secret) {
    return fmt::format("  - aesgcm: {{keys: [{{name: {}, secret: {}}}]}}\n", name, secret);
  }
  void Configure(const std::string& providers) {
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/config",
                                "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
                                "resources:\n- resources: [secrets]\n  providers:\n" +
                                    providers));
  }
  void Start(bool encrypted = true, const std::string& prefix = "/registry") {
    Stop();
    Store::Options options;
    options.reload_encryption = true;
    if (encrypted) {
      auto encryption = Encryption::Load(dir_ + "/config", prefix);
      ASSERT_TRUE(encryption) << encryption.error().message();
      options.encryption = std::move(*encryption);
    }
    store_ = std::make_unique<Store>(client_, options);
    std::promise<void> ready;
    thread_ =
        std::jthread([&](std::stop_token stop) { (void)store_->Run(stop, [&] { ready.set_value(); }); });
    ready.get_future().wait();
  }
  void Stop() {
    if (!store_) return;
    thread_.request_stop();
    thread_.join();
    store_.reset();
  }

  static Limits Soon() { return {SteadyTime::clock::now() + std::chrono::seconds(20), {}}; }
  static const api::ResourceInfo& Secrets() { return api::ResourceOf<corev1::Secret>(); }
  Result<ObjectPtr> Put(const std::string& name, int64_t expected = 0) {
    corev1::Secret secret;
    secret.mutable_metadata()->set_namespace_("default");
    secret.mutable_metadata()->set_name(name);
    (*secret.mutable_data())["password"] = "correct horse";
    Conflict conflict;
    return store_->Put(Secrets(), "default/" + name, secret, expected, {}, conflict, Soon());
  }
  Result<ObjectPtr> Get(const std::string& name) {
    return store_->Get(Secrets(), "default/" + name, "", Soon());
  }
  std::string Raw(const std::string& name) {
    auto range = client_->Range("/registry/secrets/default/" + name, {}, Soon());
    return range && !range->kvs.empty() ? range->kvs[0].value : "";
  }
  bool IsThere(const std::string& name) {
    auto object = Get(name);
    return object && *object &&
           static_cast<const corev1::Secret&>(*(*object)->Decode()).data().at("password") == "correct horse";
  }

  std::string dir_;
  std::unique_ptr<etcd::TestEtcd> etcd_;
  std::shared_ptr<etcd::Client> client_;
  std::unique_ptr<Store> store_;
  std::jthread thread_;
};

TEST_F(EncryptedStore, ValuesAreBoundToTheKeysThatEtcdHas) {
  Configure(Gcm("k", kKey1));
  auto plain = client_;
  etcd::ClientOptions blue = etcd_->supervisor().client_options();
  blue.prefix = "/blue";
  client_ = std::make_shared<etcd::Client>(blue);
  Start(true, "/blue");
  ASSERT_TRUE(Put("a"));
  const auto stored = plain->Range("/blue/secrets/default/a", {}, Soon());
  ASSERT_TRUE(stored && stored->kvs.size() == 1);
  const std::string start = "k8s:enc:aesgcm:v1:k:";
  ASSERT_EQ(stored->kvs[0].value.substr(0, start.size()), start);
  const std::string sealed = stored->kvs[0].value.substr(start.size());
  EXPECT_TRUE(NewAesGcm(Bytes(16))->FromStorage(sealed, "/blue/secrets/default/a"));
  EXPECT_FALSE(NewAesGcm(Bytes(16))->FromStorage(sealed, "/registry/secrets/default/a"));
  Start(true, "/blue");
  EXPECT_TRUE(Get("a")) << "what is read again";
}

TEST_F(EncryptedStore, EtcdHoldsCiphertext) {
  Configure(Gcm("key1", kKey1) + "  - identity: {}\n");
  Start(false);
  ASSERT_TRUE(Put("early"));
  EXPECT_NE(Raw("early").find("correct horse"), std::string::npos);
  Start();
  auto put = Put("a");
  ASSERT_TRUE(put) << put.error().message();
  EXPECT_EQ(Raw("a").substr(0, 23), "k8s:enc:aesgcm:v1:key1:");
  EXPECT_EQ(Raw("a").find("correct horse"), std::string::npos);
  EXPECT_TRUE(IsThere("a"));
  EXPECT_TRUE(IsThere("early"));
  EXPECT_FALSE(store_->IsStale(Secrets(), **put, Soon()));
  auto early = Get("early");
  EXPECT_TRUE(store_->IsStale(Secrets(), **early, Soon()));
  ASSERT_TRUE(Put("early", (*early)->revision()));
  EXPECT_EQ(Raw("early").find("correct horse"), std::string::npos);
  // From etcd into new caches.
  Start();
  EXPECT_TRUE(IsThere("a"));
}

TEST_F(EncryptedStore, AValueOfAnotherKeyIsRefused) {
  Configure(Gcm("key1", kKey1));
  Start();
  ASSERT_TRUE(Put("a"));
  ASSERT_TRUE(client_->PutIf("/registry/secrets/default/b", Raw("a"), 0, 0, Soon()));
  auto moved = Get("b");
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code(), Code::kInternal);
  EXPECT_EQ(
      moved.error().message(),
      "Internal error occurred: unable to transform key \"/registry/secrets/default/b\": cipher: message "
      "authentication failed");
  // A list would look complete.
  EXPECT_FALSE(store_->List(Secrets(), {"default"}, Soon()));
  EXPECT_TRUE(store_->List(Secrets(), {"other"}, Soon()));
  Conflict conflict;
  auto now = client_->Range("/registry/secrets/default/b", {}, Soon());
  ASSERT_TRUE(client_->DeleteIf("/registry/secrets/default/b", now->kvs[0].mod_revision, Soon()));
  auto list = store_->List(Secrets(), {"default"}, Soon());
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->items.size(), 1u);
}

TEST_F(EncryptedStore, KeysRotateWhileItRuns) {
  Configure(Gcm("key1", kKey1));
  Start();
  auto old = Put("a");
  ASSERT_TRUE(old);
  // What another server has written with a key that this one does not have yet.
  std::string foreign =
      "k8s:enc:aesgcm:v1:key2:" +
      *NewAesGcm(Unhex("101112131415161718191a1b1c1d1e1f"))
           ->ToStorage(
               *NewAesGcm(Bytes(16))->FromStorage(Raw("a").substr(23), kPlace).map([](const Opened& opened) {
                 return opened.bytes;
               }),
               "/registry/secrets/default/a");
  ASSERT_TRUE(client_->PutIf("/registry/secrets/default/a", foreign, (*old)->revision(), 0, Soon()));
  EXPECT_EQ(
      Get("a").error().message(),
      "Internal error occurred: unable to transform key \"/registry/secrets/default/a\": no matching key "
      "was found for the provided AES transformer");
  Configure("  - nonsense: {}\n");
  Configure(Gcm("key2", kKey2) + Gcm("key1", kKey1));
  SteadyTime deadline = SteadyTime::clock::now() + std::chrono::seconds(20);
  while (!store_->List(Secrets(), {"default"}, Soon()) && SteadyTime::clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(IsThere("a"));
  ASSERT_TRUE(Put("b"));
  EXPECT_EQ(Raw("b").substr(0, 23), "k8s:enc:aesgcm:v1:key2:");
}

TEST_F(EncryptedStore, Junk) {
  Configure(Gcm("key1", kKey1) + "  - identity: {}\n");
  Start();
  const std::string values[] = {"",
                                "junk",
                                "k8s:enc:",
                                "k8s:enc:aesgcm:v1:key1:",
                                "k8s:enc:aesgcm:v1:key1:short",
                                "k8s:enc:aesgcm:v1:nokey:abcdefghijklmnopqrstuvwxyz0123456789",
                                "k8s:enc:kms:v2:x:abc",
                                "k8s:enc:aesgcm:v1:key1:" + Bytes(200)};
  int count = 0;
  for (const std::string& value : values) {
    std::string name = "junk" + std::to_string(++count);
    ASSERT_TRUE(client_->PutIf("/registry/secrets/default/" + name, value, 0, 0, Soon()));
    auto got = Get(name);
    ASSERT_FALSE(got) << value;
    EXPECT_EQ(got.error().code(), Code::kInternal);
  }
  ASSERT_TRUE(Put("good"));
  EXPECT_TRUE(IsThere("good"));
}

}  // namespace
}  // namespace keelson::storage
