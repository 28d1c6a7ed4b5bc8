#include "kubelet/volume/selected_keys.h"

namespace keelson::kubelet {

namespace {

// All keys under their own names, or the listed ones under the listed paths.
template <typename Find, typename All>
Result<> Select(const KeyItems& items, mode_t mode, bool optional, const std::string& missing,
                const Find& find, const All& all, Payload& out) {
  if (items.empty()) {
    all([&](const std::string& key, const std::string& value) { out[key] = {value, mode, std::nullopt}; });
    return {};
  }
  for (const auto& item : items) {
    const std::string* value = find(item.key());
    if (value) {
      out[item.path()] = {*value, ModeOf(item.has_mode(), item.mode(), mode), std::nullopt};
    } else if (!optional) {
      return Error(Code::kInvalid, missing + item.key());
    }
  }
  return {};
}

}  // namespace

Result<> AddConfigMap(const corev1::ConfigMap& map, const KeyItems& items, mode_t mode, bool optional,
                      Payload& out) {
  auto find = [&map](const std::string& key) -> const std::string* {
    if (auto it = map.data().find(key); it != map.data().end()) return &it->second;
    auto it = map.binary_data().find(key);
    return it == map.binary_data().end() ? nullptr : &it->second;
  };
  auto all = [&map](const auto& each) {
    for (const auto& [key, value] : map.data()) each(key, value);
    for (const auto& [key, value] : map.binary_data()) each(key, value);
  };
  return Select(items, mode, optional, "configmap references non-existent config key: ", find, all, out);
}

Result<> AddSecret(const corev1::Secret& secret, const KeyItems& items, mode_t mode, bool optional,
                   Payload& out) {
  auto find = [&secret](const std::string& key) -> const std::string* {
    auto it = secret.data().find(key);
    return it == secret.data().end() ? nullptr : &it->second;
  };
  auto all = [&secret](const auto& each) {
    for (const auto& [key, value] : secret.data()) each(key, value);
  };
  return Select(items, mode, optional, "references non-existent secret key: ", find, all, out);
}

}  // namespace keelson::kubelet
