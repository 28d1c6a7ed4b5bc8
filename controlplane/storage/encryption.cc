#include "controlplane/storage/encryption.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "controlplane/storage/convert.h"
#include "controlplane/storage/encryption/kms.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/crypto/digest.h"
#include "lib/crypto/server_identity.h"
#include "lib/metrics/metrics.h"

namespace keelson::storage {
namespace {

using Type = EncryptionProvider::Type;
using Providers = std::vector<PrefixTransformer>;

constexpr std::chrono::seconds kFilePeriod{1};
constexpr std::string_view kRegistry = "/registry";

PrefixTransformer KeysOf(const EncryptionProvider& provider, std::string_view name, std::string_view family,
                         TransformerPtr (*make)(std::string)) {
  Providers keys;
  for (const EncryptionProvider::Key& key : provider.keys) keys.push_back({key.name + ":", make(key.secret)});
  return {
      fmt::format("{}{}:v1:", kEncryptedPrefix, name),
      NewPrefixTransformers(
          std::move(keys), fmt::format("no matching key was found for the provided {} transformer", family))};
}

PrefixTransformer Make(const EncryptionProvider& provider,
                       std::vector<std::shared_ptr<KmsTransformer>>& kms) {
  switch (provider.type) {
    case Type::kAesCbc:
      return KeysOf(provider, "aescbc", "AES", NewAesCbc);
    case Type::kAesGcm:
      return KeysOf(provider, "aesgcm", "AES", NewAesGcm);
    case Type::kSecretbox:
      return KeysOf(provider, "secretbox", "Secretbox", NewSecretbox);
    case Type::kKms:
      kms.push_back(std::make_shared<KmsTransformer>(
          KmsTransformer::Options{provider.name, provider.endpoint, provider.timeout}));
      return {fmt::format("{}kms:v2:{}:", kEncryptedPrefix, provider.name), kms.back()};
    case Type::kIdentity:
      break;
  }
  return {"", NewIdentity()};
}

// "deployments.apps", "*.apps", "*." (the core group), "secrets"; with a dot in all cases.
std::string Canonical(const std::string& resource) {
  return resource.find('.') == std::string::npos ? resource + "." : resource;
}

// A rule that an earlier one leaves nothing to do is a mistake.
Result<> CheckMasked(const std::map<std::string, Providers>& earlier, const std::string& resource) {
  std::string group = "*" + Canonical(resource).substr(Canonical(resource).find('.'));
  for (const std::string& mask : {group, std::string("*.*")}) {
    if (earlier.count(mask) > 0) {
      return Error(Code::kInvalid,
                   fmt::format("resource \"{}\" is masked by earlier rule \"{}\"", resource, mask));
    }
  }
  return {};
}

metrics::Family& operations_total = metrics::Counter(
    "apiserver_storage_transformation_operations_total",
    "Total number of transformations. Successful transformation will have a status 'OK' and a varied status "
    "string when the transformation fails.",
    {"resource", "status", "transformation_type", "transformer_prefix"});
metrics::Family& operation_seconds = metrics::Histograms(
    "apiserver_storage_transformation_duration_seconds",
    "Latencies in seconds of value transformation operations.", metrics::ExponentialBuckets(5e-6, 2, 25),
    {"transformation_type", "transformer_prefix"});
metrics::Family& reloads_total =
    metrics::Counter("apiserver_encryption_config_controller_automatic_reloads_total",
                     "Total number of reload successes and failures of encryption configuration split by "
                     "apiserver identity.",
                     {"apiserver_id_hash", "status"});
metrics::Family& reloaded_at =
    metrics::Gauge("apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
                   "Timestamp of the last successful or failed automatic reload of encryption configuration "
                   "split by apiserver identity.",
                   {"apiserver_id_hash", "status"});
metrics::Family& last_config =
    metrics::Gauge("apiserver_encryption_config_controller_last_config_info",
                   "Information about the last applied encryption configuration with hash as label, split by "
                   "apiserver identity.",
                   {"apiserver_id_hash", "hash"});

void TellConfig(const std::string& text) {
  last_config.Clear();
  last_config.With({crypto::ApiServerIdHash(), "sha256:" + crypto::Sha256Hex(text)}).Set(1);
}

// Values are bound to the keys that etcd has, which begin otherwise than ours.
class Relocated : public Transformer {
 public:
  Relocated(TransformerPtr inner, std::string prefix)
      : inner_(std::move(inner)), prefix_(std::move(prefix)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override {
    return inner_->FromStorage(data, Outward(etcd_key));
  }
  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override {
    return inner_->ToStorage(bytes, Outward(etcd_key));
  }

 private:
  std::string Outward(std::string_view key) const {
    return prefix_ + std::string(key.substr(std::min(key.size(), kRegistry.size())));
  }

  const TransformerPtr inner_;
  const std::string prefix_;
};

class Counted : public Transformer {
 public:
  Counted(TransformerPtr inner, std::string resource)
      : inner_(std::move(inner)), resource_(std::move(resource)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override {
    const SteadyTime begin = SteadyTime::clock::now();
    Result<Opened> opened = inner_->FromStorage(data, etcd_key);
    Count("from_storage", opened.has_value(), data, begin);
    return opened;
  }
  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override {
    const SteadyTime begin = SteadyTime::clock::now();
    Result<std::string> value = inner_->ToStorage(bytes, etcd_key);
    Count("to_storage", value.has_value(), value ? *value : "", begin);
    return value;
  }

 private:
  void Count(std::string_view direction, bool good, std::string_view value, SteadyTime begin) const {
    const std::string type(direction), prefix = PrefixOf(value);
    operations_total.With({resource_, good ? "OK" : "Internal", type, prefix}).Increment();
    if (!good) return;
    const std::chrono::duration<double> took = SteadyTime::clock::now() - begin;
    operation_seconds.HistogramWith({type, prefix}).Observe(took.count());
  }
  // "k8s:enc:aescbc:v1:" or "k8s:enc:kms:v2:"; nothing that is in doubt: values may be junk.
  static std::string PrefixOf(std::string_view value) {
    for (const char* known : {"aescbc:v1:", "aesgcm:v1:", "secretbox:v1:", "kms:v2:"}) {
      std::string prefix = std::string(kEncryptedPrefix) + known;
      if (value.substr(0, prefix.size()) == prefix) return prefix;
    }
    return value.substr(0, kEncryptedPrefix.size()) == kEncryptedPrefix ? "unknown" : "identity";
  }

  const TransformerPtr inner_;
  const std::string resource_;
};

}  // namespace

struct Encryption::Table {
  std::map<std::string, Providers> rules;  // by resource, group or "*.*", as Canonical() spells them
  std::vector<std::shared_ptr<KmsTransformer>> kms;
  std::string etcd_prefix;
  std::map<std::string_view, TransformerPtr> by_prefix;  // built-in resources, by etcd's prefix
  mutable Mutex mutex;
  // Custom resources, which come and go, by etcd's prefix; null: no rule names them.
  mutable std::map<std::string, TransformerPtr, std::less<>> custom KEELSON_GUARDED_BY(mutex);

  // By the rule that names the resource most precisely. Null: there is none.
  TransformerPtr Make(const api::ResourceInfo& info) const {
    const std::string group(info.group);
    for (const std::string& name :
         {fmt::format("{}.{}", info.resource, group), "*." + group, std::string("*.*")}) {
      auto rule = rules.find(name);
      if (rule == rules.end()) continue;
      TransformerPtr transformer = NewPrefixTransformers(rule->second, "no matching prefix found");
      if (etcd_prefix != kRegistry) {
        transformer = std::make_shared<Relocated>(std::move(transformer), etcd_prefix);
      }
      return std::make_shared<Counted>(std::move(transformer), info.GroupResource());
    }
    return nullptr;
  }

  TransformerPtr Custom(const api::ResourceInfo& info) const {
    MutexLock lock(mutex);
    auto found = custom.find(info.etcd_prefix);
    if (found == custom.end()) found = custom.emplace(info.etcd_prefix, Make(info)).first;
    return found->second;
  }
};

struct Encryption::Impl {
  std::string path, etcd_prefix, text;
  SteadyTime next_try{};  // after a failure that may pass
  mutable Mutex mutex;
  std::shared_ptr<const Table> table KEELSON_GUARDED_BY(mutex);

  std::shared_ptr<const Table> Now() const {
    MutexLock lock(mutex);
    return table;
  }
};

Encryption::Encryption(std::string path, std::string etcd_prefix) : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  impl_->etcd_prefix = std::move(etcd_prefix);
}
Encryption::~Encryption() = default;

Result<std::shared_ptr<const Encryption::Table>> Encryption::Read(std::string& text) const {
  KEELSON_ASSIGN_OR_RETURN(text, ReadFile(impl_->path));
  Result<EncryptionConfig> config = ParseEncryptionConfig(text);
  if (!config) return config.error().Wrap("error while parsing file " + impl_->path);
  auto table = std::make_shared<Table>();
  table->etcd_prefix = impl_->etcd_prefix;
  for (const EncryptionRule& rule : config->rules) {
    Providers providers;
    for (const EncryptionProvider& provider : rule.providers) providers.push_back(Make(provider, table->kms));
    for (const std::string& resource : rule.resources) {
      KEELSON_RETURN_IF_ERROR(CheckMasked(table->rules, resource));
      Providers& all = table->rules[Canonical(resource)];
      all.insert(all.end(), providers.begin(), providers.end());
    }
  }
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.etcd_prefix.empty() || &StoredAs(info) != &info) continue;
    if (TransformerPtr transformer = table->Make(info)) {
      table->by_prefix[info.etcd_prefix] = std::move(transformer);
    }
  }
  return std::shared_ptr<const Table>(std::move(table));
}

Result<std::unique_ptr<Encryption>> Encryption::Load(std::string path, std::string etcd_prefix) {
  std::unique_ptr<Encryption> made(new Encryption(std::move(path), std::move(etcd_prefix)));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<const Table> table, made->Read(made->impl_->text));
  for (const auto& kms : table->kms) {
    if (Result<> probed = kms->Probe(); !probed) {
      log::Warn("A KMS does not answer", {{"err", probed.error()}});
    }
  }
  TellConfig(made->impl_->text);
  MutexLock lock(made->impl_->mutex);
  made->impl_->table = std::move(table);
  return made;
}

TransformerPtr Encryption::Of(const api::ResourceInfo& info) const {
  std::shared_ptr<const Table> table = impl_->Now();
  if (info.IsCustom()) return table->Custom(info);
  auto found = table->by_prefix.find(info.etcd_prefix);
  return found == table->by_prefix.end() ? nullptr : found->second;
}

Result<> Encryption::Health() const {
  for (const auto& kms : impl_->Now()->kms) KEELSON_RETURN_IF_ERROR(kms->Health());
  return {};
}

bool Encryption::has_kms() const { return !impl_->Now()->kms.empty(); }

bool Encryption::CheckFile() {
  if (SteadyTime::clock::now() < impl_->next_try) return false;
  if (Result<std::string> text = ReadFile(impl_->path); text && *text == impl_->text) return false;
  std::string text;
  Result<std::shared_ptr<const Table>> table = Read(text);
  Result<> good;
  if (!table) good = table.error();
  for (size_t i = 0; good && i < (*table)->kms.size(); ++i) good = (*table)->kms[i]->Probe();
  const char* status = good ? "success" : "failure";
  reloads_total.With({crypto::ApiServerIdHash(), status}).Increment();
  reloaded_at.With({crypto::ApiServerIdHash(), status})
      .Set(static_cast<double>(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  if (!good) {
    log::Error("Cannot take up the encryption configuration", {{"err", good.error()}});
    // Junk is not looked at again until it changes; a KMS may come up.
    if (!table && !text.empty()) {
      impl_->text = text;
    } else {
      impl_->next_try = SteadyTime::clock::now() + KmsTransformer::kProbePeriodAfterFailure;
    }
    return false;
  }
  impl_->text = text;
  TellConfig(text);
  log::Info("Took up a new encryption configuration", {{"file", impl_->path}});
  MutexLock lock(impl_->mutex);
  impl_->table = *table;
  return true;
}

void Encryption::Run(bool reload, const std::function<void()>& changed, std::stop_token stop) {
  Mutex mutex;
  CondVar never;
  SteadyTime probe = SteadyTime::clock::now() + KmsTransformer::kProbePeriodAfterFailure;
  while (true) {
    {
      MutexLock lock(mutex);
      never.wait_for(mutex, stop, kFilePeriod, [] { return false; });
    }
    if (stop.stop_requested()) return;
    if (reload && CheckFile()) changed();
    if (SteadyTime::clock::now() < probe) continue;
    bool all_good = true;
    for (const auto& kms : impl_->Now()->kms) {
      Result<> probed = kms->Probe();
      if (!probed) log::Warn("A KMS does not answer", {{"err", probed.error()}});
      all_good = all_good && probed;
    }
    probe = SteadyTime::clock::now() +
            (all_good ? KmsTransformer::kProbePeriod : KmsTransformer::kProbePeriodAfterFailure);
  }
}

}  // namespace keelson::storage
