#include "kubelet/staticpod/pod_uid.h"

#include <fmt/format.h>

#include <filesystem>

#include "lib/api/codec/codec.h"

namespace keelson::kubelet {

namespace {

namespace json = boost::json;

// Go has these in the pod's security context.
constexpr const char* kHostFields[] = {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace",
                                       "hostUsers"};

// As Go's types have it.
json::value Internal(json::value pod) {
  json::object& root = pod.get_object();
  json::object& spec = root["spec"].is_object() ? root["spec"].get_object() : root["spec"].emplace_object();
  json::value& security = spec["securityContext"];
  if (!security.is_object()) security.emplace_object();
  for (const char* name : kHostFields) {
    if (auto it = spec.find(name); it != spec.end()) security.get_object()[name] = it->value();
  }
  return pod;
}

// FNV-1a, 128 bit.
std::string Hash(std::string_view text) {
  __extension__ typedef unsigned __int128 Wide;
  constexpr Wide kPrime = (Wide{1} << 88) + 0x13b;
  Wide hash = (Wide{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
  for (unsigned char c : text) hash = (hash ^ c) * kPrime;
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(hash >> 64), static_cast<uint64_t>(hash));
}

}  // namespace

std::optional<std::string> UpstreamPodUid(const corev1::Pod& pod, const PodPlace& place,
                                          const GoTypes& types) {
  json::error_code failed;
  json::value document = json::parse(api::EncodeJson(pod), failed);
  if (failed || !document.is_object()) return std::nullopt;
  auto printed = GoPrint(types, "*core.Pod", Internal(std::move(document)));
  if (!printed) return std::nullopt;
  return Hash(place.file ? *printed + "host:" + place.host +
                               "file:" + std::filesystem::path(place.place).lexically_normal().string()
                         : *printed + "url:" + place.place);
}

}  // namespace keelson::kubelet
