#include "controlplane/storage/encryption/kms.h"

#include <map>
#include <optional>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "controlplane/storage/encryption/kms_metrics.h"
#include "controlplane/storage/encryption/kms_object.pb.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/crypto/random.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/kms.grpc.pb.h"

namespace keelson::storage {
namespace {

using Annotations = google::protobuf::Map<std::string, std::string>;

constexpr size_t kSeedSize = 32, kKeptSeeds = 1000;
// A seed may be written with this long after the plugin has last confirmed its key.
constexpr std::chrono::minutes kSeedLife{3};
constexpr std::chrono::hours kSeedKept{1};
constexpr size_t kMaxKeyId = 1024, kMaxCiphertext = 1024, kMaxAnnotations = 32 * 1024;

Error Unavailable(std::string what) { return Error(Code::kUnavailable, std::move(what)); }

Result<> CheckKeyId(const std::string& id) {
  if (id.empty()) return Unavailable("got unexpected invalid key ID from the KMS: it is empty");
  if (id.size() > kMaxKeyId) return Unavailable("got unexpected invalid key ID from the KMS: it is too long");
  return {};
}

Result<> CheckAnnotations(const Annotations& annotations) {
  size_t size = 0;
  for (const auto& [name, value] : annotations) {
    if (name.find('.') == std::string::npos) {
      return Unavailable("the KMS's annotations must have fully qualified domain names");
    }
    size += name.size() + value.size();
  }
  if (size > kMaxAnnotations) return Unavailable("the KMS's annotations are too large");
  return {};
}

// What names a seed: its encrypted form and what the plugin needs to open it.
std::string CacheKey(const v2::EncryptedObject& object) {
  v2::EncryptedObject named;
  named.set_keyid(object.keyid());
  named.set_encrypteddeksource(object.encrypteddeksource());
  std::map<std::string, std::string> sorted(object.annotations().begin(), object.annotations().end());
  std::string out =
      fmt::format("{}:{}", static_cast<int>(object.encrypteddeksourcetype()), named.SerializeAsString());
  for (const auto& [name, value] : sorted) out += fmt::format(":{}:{}={}", name, value.size(), value);
  return out;
}

struct Seed {
  v2::EncryptedObject sealed;  // without data
  TransformerPtr transformer;
  SteadyTime expires;
};

struct Cached {
  TransformerPtr transformer;
  SteadyTime used;
};

}  // namespace

struct KmsTransformer::Impl {
  Options options;
  Clock& clock;
  std::unique_ptr<v2::KeyManagementService::Stub> plugin;
  mutable Mutex mutex;
  std::optional<Seed> seed KEELSON_GUARDED_BY(mutex);
  Result<> health KEELSON_GUARDED_BY(mutex) = Unavailable("the KMS has not been asked yet");
  mutable std::map<std::string, Cached> opened KEELSON_GUARDED_BY(mutex);

  Impl(Options given, Clock& the_clock)
      : options(std::move(given)),
        clock(the_clock),
        plugin(v2::KeyManagementService::NewStub(rpc::PlainChannel(options.endpoint))) {}

  Error Failed(const Error& error) const {
    return Unavailable(fmt::format("KMS provider {}: {}", options.name, error.message()));
  }

  Result<std::string> AskStatus() const {
    v2::StatusResponse reply;
    rpc::Call call(options.timeout);
    const SteadyTime begin = SteadyTime::clock::now();
    const grpc::Status status = plugin->Status(call.context(), v2::StatusRequest(), &reply);
    CountKmsCall(options.name, "Status", status.error_code(), begin);
    KEELSON_RETURN_IF_ERROR(call.Done(status, "failed to get status"));
    if (reply.healthz() != "ok") {
      return Unavailable(fmt::format("got unexpected healthz status: {}", reply.healthz()));
    }
    if (reply.version() != "v2" && reply.version() != "v2beta1") {
      return Unavailable(
          fmt::format("expected KMS API version v2beta1 or v2, got {}", reply.version().substr(0, 32)));
    }
    const std::string& id = reply.key_id();
    CountKeyStatus(options.name, id, id.empty() ? "empty" : id.size() > kMaxKeyId ? "too_long" : "");
    KEELSON_RETURN_IF_ERROR(CheckKeyId(id));
    return id;
  }

  Result<Seed> MakeSeed() const {
    SteadyTime begin = SteadyTime::clock::now();
    const std::string bytes = crypto::RandomBytes(kSeedSize);
    CountDataKey(begin);
    v2::EncryptRequest request;
    request.set_plaintext(bytes);
    request.set_uid(api::NewUid());
    v2::EncryptResponse reply;
    rpc::Call call(options.timeout);
    begin = SteadyTime::clock::now();
    const grpc::Status status = plugin->Encrypt(call.context(), request, &reply);
    CountKmsCall(options.name, "Encrypt", status.error_code(), begin);
    KEELSON_RETURN_IF_ERROR(call.Done(status, "failed to encrypt DEK source"));
    KEELSON_RETURN_IF_ERROR(CheckKeyId(reply.key_id()));
    KEELSON_RETURN_IF_ERROR(CheckAnnotations(reply.annotations()));
    if (reply.ciphertext().empty() || reply.ciphertext().size() > kMaxCiphertext) {
      return Unavailable("the KMS's encrypted DEK source is empty or too large");
    }
    Seed made;
    made.sealed.set_keyid(reply.key_id());
    made.sealed.set_encrypteddeksource(reply.ciphertext());
    made.sealed.set_encrypteddeksourcetype(v2::HKDF_SHA256_XNONCE_AES_GCM_SEED);
    *made.sealed.mutable_annotations() = reply.annotations();
    made.transformer = NewDerivedAesGcm(bytes);
    return made;
  }

  Result<> Renew() {
    KEELSON_ASSIGN_OR_RETURN(std::string key_id, AskStatus());
    std::optional<Seed> present;
    {
      MutexLock lock(mutex);
      present = seed;
    }
    if (!present || present->sealed.keyid() != key_id) {
      KEELSON_ASSIGN_OR_RETURN(present, MakeSeed());
      log::Info("New data encryption key", {{"provider", options.name}});
    }
    present->expires = clock.SteadyNow() + kSeedLife;
    MutexLock lock(mutex);
    seed = std::move(present);
    return {};
  }

  // The transformer of a value that was read; asks the plugin when its seed is new.
  Result<TransformerPtr> Open(const v2::EncryptedObject& object) const {
    const std::string key = CacheKey(object);
    {
      MutexLock lock(mutex);
      if (seed && CacheKey(seed->sealed) == key) return seed->transformer;
      if (auto found = opened.find(key); found != opened.end()) {
        found->second.used = clock.SteadyNow();
        return found->second.transformer;
      }
    }
    CountSeedMiss();
    v2::DecryptRequest request;
    request.set_ciphertext(object.encrypteddeksource());
    request.set_uid(api::NewUid());
    request.set_key_id(object.keyid());
    *request.mutable_annotations() = object.annotations();
    v2::DecryptResponse reply;
    rpc::Call call(options.timeout);
    const SteadyTime begin = SteadyTime::clock::now();
    const grpc::Status status = plugin->Decrypt(call.context(), request, &reply);
    CountKmsCall(options.name, "Decrypt", status.error_code(), begin);
    Result<> done = call.Done(status, "failed to decrypt DEK");
    if (!done) return Failed(done.error());
    const bool derived = object.encrypteddeksourcetype() == v2::HKDF_SHA256_XNONCE_AES_GCM_SEED;
    if (reply.plaintext().size() != kSeedSize) {
      return Error(Code::kInternal, "the DEK that the KMS has decrypted is not of the expected length");
    }
    TransformerPtr made = derived ? NewDerivedAesGcm(reply.plaintext()) : NewAesGcm(reply.plaintext());
    MutexLock lock(mutex);
    Keep(key, made);
    return made;
  }

  void Keep(const std::string& key, const TransformerPtr& made) const KEELSON_REQUIRES(mutex) {
    const SteadyTime now = clock.SteadyNow();
    for (auto it = opened.begin(); it != opened.end();) {
      bool drop = now - it->second.used > kSeedKept || opened.size() >= kKeptSeeds;
      it = drop ? opened.erase(it) : std::next(it);
    }
    opened[key] = {made, now};
    TellSeedsKept(options.name, opened.size());
  }
};

KmsTransformer::KmsTransformer(Options options, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), clock)) {}
KmsTransformer::~KmsTransformer() = default;

Result<> KmsTransformer::Probe() {
  Result<> renewed = impl_->Renew();
  if (!renewed) renewed = impl_->Failed(renewed.error());
  MutexLock lock(impl_->mutex);
  impl_->health = renewed;
  return renewed;
}

Result<> KmsTransformer::Health() const {
  MutexLock lock(impl_->mutex);
  return impl_->health;
}

Result<Opened> KmsTransformer::FromStorage(std::string_view data, std::string_view etcd_key) const {
  v2::EncryptedObject object;
  if (!object.ParseFromArray(data.data(), static_cast<int>(data.size())) || object.encrypteddata().empty() ||
      !CheckKeyId(object.keyid()) || !CheckAnnotations(object.annotations()) ||
      !v2::EncryptedDEKSourceType_IsValid(object.encrypteddeksourcetype()) ||
      object.encrypteddeksource().empty()) {
    return Error(Code::kInternal, "the stored data is no object encrypted by a KMS");
  }
  CountKeyUse(impl_->options.name, "from_storage", object.keyid());
  KEELSON_ASSIGN_OR_RETURN(TransformerPtr transformer, impl_->Open(object));
  KEELSON_ASSIGN_OR_RETURN(Opened out, transformer->FromStorage(object.encrypteddata(), etcd_key));
  MutexLock lock(impl_->mutex);
  out.stale = !impl_->seed || impl_->seed->sealed.keyid() != object.keyid() ||
              object.encrypteddeksourcetype() != v2::HKDF_SHA256_XNONCE_AES_GCM_SEED;
  return out;
}

Result<std::string> KmsTransformer::ToStorage(std::string_view bytes, std::string_view etcd_key) const {
  Seed seed;
  {
    MutexLock lock(impl_->mutex);
    if (!impl_->seed || impl_->seed->expires < impl_->clock.SteadyNow()) {
      return impl_->health ? Unavailable(fmt::format("KMS provider {}: the encryption key has expired",
                                                     impl_->options.name))
                           : impl_->health.error();
    }
    seed = *impl_->seed;
  }
  KEELSON_ASSIGN_OR_RETURN(*seed.sealed.mutable_encrypteddata(),
                           seed.transformer->ToStorage(bytes, etcd_key));
  CountKeyUse(impl_->options.name, "to_storage", seed.sealed.keyid());
  return seed.sealed.SerializeAsString();
}

}  // namespace keelson::storage
