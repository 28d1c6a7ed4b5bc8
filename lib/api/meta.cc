#include "lib/api/meta.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "lib/api/proto/custom_object.pb.h"
#include "lib/base/log.h"
#include "lib/base/wall_time.h"

namespace keelson::api {
namespace {

using google::protobuf::FieldDescriptor;

const FieldDescriptor* MetadataField(const Descriptor* descriptor, const Descriptor* type) {
  const FieldDescriptor* field = descriptor->FindFieldByName("metadata");
  return field && field->message_type() == type ? field : nullptr;
}

const FieldDescriptor& RequireMetadata(const Message& message, const Descriptor* type) {
  const FieldDescriptor* field = MetadataField(message.GetDescriptor(), type);
  if (!field) {
    log::Error("Message has no metadata", {{"type", message.GetDescriptor()->full_name()}});
    std::abort();
  }
  return *field;
}

std::mt19937_64& Random() {
  // On the heap: most threads never need an engine.
  thread_local const auto engine = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::make_unique<std::mt19937_64>(seed);
  }();
  return *engine;
}

}  // namespace

const metav1::ObjectMeta& Meta(const Message& object) {
  const FieldDescriptor& field = RequireMetadata(object, metav1::ObjectMeta::descriptor());
  return static_cast<const metav1::ObjectMeta&>(object.GetReflection()->GetMessage(object, &field));
}

metav1::ObjectMeta& MutableMeta(Message& object) {
  const FieldDescriptor& field = RequireMetadata(object, metav1::ObjectMeta::descriptor());
  return static_cast<metav1::ObjectMeta&>(*object.GetReflection()->MutableMessage(&object, &field));
}

bool HasObjectMeta(const Descriptor* descriptor) {
  return MetadataField(descriptor, metav1::ObjectMeta::descriptor()) != nullptr;
}

bool IsCustom(const Descriptor* descriptor) { return descriptor == custom::CustomObject::descriptor(); }

metav1::ListMeta& MutableListMeta(Message& list) {
  const FieldDescriptor& field = RequireMetadata(list, metav1::ListMeta::descriptor());
  return static_cast<metav1::ListMeta&>(*list.GetReflection()->MutableMessage(&list, &field));
}

std::string KeyOf(const Message& object) {
  const metav1::ObjectMeta& meta = Meta(object);
  return KeyOf(meta.namespace_(), meta.name());
}

std::string KeyOf(std::string_view ns, std::string_view name) {
  return ns.empty() ? std::string(name) : std::string(ns) + "/" + std::string(name);
}

std::pair<std::string, std::string> SplitKey(std::string_view key) {
  auto slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

const metav1::OwnerReference* ControllerOf(const metav1::ObjectMeta& meta) {
  for (const auto& owner : meta.owner_references()) {
    if (owner.controller()) return &owner;
  }
  return nullptr;
}

metav1::OwnerReference ControllerRef(const Message& owner) {
  GroupVersionKind gvk = GvkOf(owner.GetDescriptor());
  metav1::OwnerReference reference;
  reference.set_api_version(gvk.ApiVersion());
  reference.set_kind(gvk.kind);
  reference.set_name(Meta(owner).name());
  reference.set_uid(Meta(owner).uid());
  reference.set_controller(true);
  reference.set_block_owner_deletion(true);
  return reference;
}

metav1::Time ToTime(WallTime time) {
  metav1::Time out;
  out.set_seconds(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  return out;
}

metav1::MicroTime ToMicroTime(WallTime time) {
  auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  metav1::MicroTime out;
  out.set_seconds(micros / 1'000'000);
  if (micros % 1'000'000 != 0) out.set_nanos(static_cast<int32_t>(micros % 1'000'000) * 1000);
  return out;
}

WallTime FromTime(const metav1::Time& time) { return WallTimeOf(time.seconds(), time.nanos()); }

WallTime FromMicroTime(const metav1::MicroTime& time) { return WallTimeOf(time.seconds(), time.nanos()); }

std::string FormatTime(const metav1::Time& time) {
  // Clamp to years of four digits: protobuf can carry others, RFC 3339 cannot.
  time_t seconds = std::clamp<int64_t>(time.seconds(), -62135596800, 253402300799);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string NewUid() {
  uint64_t high = Random()(), low = Random()();
  high = (high & ~uint64_t{0xf000}) | 0x4000;                // version 4
  low = (low & ~(uint64_t{3} << 62)) | (uint64_t{2} << 62);  // RFC 4122 variant
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff,
                     low >> 48, low & 0xffffffffffff);
}

std::string RandomSuffix(size_t length) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::uniform_int_distribution<size_t> pick(0, kAlphabet.size() - 1);
  std::string out;
  while (out.size() < length) out += kAlphabet[pick(Random())];
  return out;
}

}  // namespace keelson::api
