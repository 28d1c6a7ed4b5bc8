#include "controlplane/apiserver/authn/identity_lookup.h"

#include "lib/api/meta.h"

namespace keelson::apiserver {
namespace {

constexpr std::chrono::seconds kPatience{5};

// Decodes only the metadata (the first field), because this runs for every request.
std::optional<metav1::ObjectMeta> MetaOf(const storage::Object& object) {
  std::string_view bytes = object.raw();
  constexpr char kField1 = 0x0a;
  if (bytes.empty() || bytes.front() != kField1) return std::nullopt;
  bytes.remove_prefix(1);
  size_t size = 0;
  for (int shift = 0; shift < 28; shift += 7) {
    if (bytes.empty()) return std::nullopt;
    unsigned char byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    size |= static_cast<size_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  metav1::ObjectMeta meta;
  if (size > bytes.size() || !meta.ParseFromArray(bytes.data(), static_cast<int>(size))) return std::nullopt;
  return meta;
}

std::string DataOf(const corev1::Secret& secret, const std::string& key) {
  auto it = secret.data().find(key);
  return it == secret.data().end() ? "" : it->second;
}

void ReadToken(const storage::Object& object, ObjectIdentity& identity) {
  auto message = object.Decode();
  const auto& secret = static_cast<const corev1::Secret&>(*message);
  identity.token = DataOf(secret, "token");
  const auto& labels = secret.metadata().labels();
  identity.token_invalid = labels.contains(std::string(kTokenInvalidLabel));
  auto last_used = labels.find(std::string(kTokenLastUsedLabel));
  if (last_used != labels.end()) identity.last_used = last_used->second;
}

}  // namespace

IdentityLookup NewIdentityLookup(storage::Store& store) {
  return [&store](std::string_view resource, std::string_view ns,
                  std::string_view name) -> std::optional<ObjectIdentity> {
    const api::ResourceInfo& info = *api::FindResource("", "v1", resource);
    const std::string key = api::KeyOf(ns, name);
    storage::ObjectPtr object = store.Peek(info, key);
    if (!object) {
      // A token may arrive before the cache has its new object: read consistently.
      auto read = store.Get(info, key, "", {SteadyTime::clock::now() + kPatience, {}});
      if (!read || !*read) return std::nullopt;
      object = *read;
    }
    std::optional<metav1::ObjectMeta> meta = MetaOf(*object);
    if (!meta) meta = api::Meta(*object->Decode());
    ObjectIdentity identity{meta->uid(), std::nullopt};
    if (meta->has_deletion_timestamp()) identity.deleted = api::FromTime(meta->deletion_timestamp());
    if (resource == "secrets") ReadToken(*object, identity);
    return identity;
  };
}

BootstrapSecretLookup NewBootstrapSecretLookup(storage::Store& store) {
  return [&store](const std::string& name) -> std::optional<BootstrapSecret> {
    storage::ObjectPtr object =
        store.Peek(api::ResourceOf<corev1::Secret>(), api::KeyOf("kube-system", name));
    if (!object) return std::nullopt;
    auto message = object->Decode();
    const auto& secret = static_cast<const corev1::Secret&>(*message);
    BootstrapSecret out;
    out.type = secret.type();
    out.deleted = secret.metadata().has_deletion_timestamp();
    for (const auto& entry : secret.data()) out.data[entry.first] = entry.second;
    return out;
  };
}

}  // namespace keelson::apiserver
