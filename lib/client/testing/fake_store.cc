#include "lib/client/testing/fake_store.h"

#include <algorithm>

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>
#include <boost/json.hpp>

#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"
#include "lib/base/wall_time.h"

namespace keelson::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

Error About(const api::ResourceInfo& info, const std::string& name, Code code, std::string message) {
  ErrorDetails details;
  details.name = name;
  details.group = info.group;
  details.kind = info.resource;
  return Error(code, std::move(message)).WithDetails(std::move(details));
}

Error NotFound(const api::ResourceInfo& info, const std::string& name) {
  return About(info, name, Code::kNotFound, fmt::format("{} \"{}\" not found", info.GroupResource(), name));
}

Error Conflict(const api::ResourceInfo& info, const std::string& name, std::string_view why) {
  return About(
      info, name, Code::kConflict,
      fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", info.GroupResource(), name, why));
}

constexpr std::string_view kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

bool HasStatus(const api::ResourceInfo& info) {
  if (info.IsCustom()) return true;  // with the subresource, as nearly all definitions
  return api::FindResource(info.group, info.version, std::string(info.resource) + "/status") != nullptr;
}

// The same in the content of custom objects.
void CopyMember(const std::string& name, const Message& from, Message& to) {
  Result<boost::json::object> source = api::ContentOf(from), target = api::ContentOf(to);
  if (!source || !target) return;
  if (const boost::json::value* member = source->if_contains(name)) {
    (*target)[name] = *member;
  } else {
    target->erase(name);
  }
  api::SetContent(to, *target);
}

// Copies field `name` from `from` to `to`, if the kind has it.
void CopyField(const std::string& name, const Message& from, Message& to) {
  if (api::IsCustom(to.GetDescriptor()) && name != "metadata") return CopyMember(name, from, to);
  const FieldDescriptor* field = from.GetDescriptor()->FindFieldByName(name);
  if (!field || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_repeated()) return;
  if (!from.GetReflection()->HasField(from, field)) {
    to.GetReflection()->ClearField(&to, field);
  } else {
    to.GetReflection()->MutableMessage(&to, field)->CopyFrom(from.GetReflection()->GetMessage(from, field));
  }
}

std::unique_ptr<Message> Clone(const Message& message) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  return copy;
}

// Equal except for metadata and status: the generation stays.
bool SameSpec(const Message& a, const Message& b) {
  std::unique_ptr<Message> x = Clone(a), y = Clone(b);
  for (const char* field : {"metadata", "status"}) {
    const FieldDescriptor* descriptor = a.GetDescriptor()->FindFieldByName(field);
    if (!descriptor) continue;
    x->GetReflection()->ClearField(x.get(), descriptor);
    y->GetReflection()->ClearField(y.get(), descriptor);
  }
  return MessageDifferencer::Equals(*x, *y);
}

bool HasSpec(const Message& object) { return object.GetDescriptor()->FindFieldByName("spec") != nullptr; }

int64_t GraceOf(const Message& object, const metav1::DeleteOptions& options) {
  const auto* pod = dynamic_cast<const corev1::Pod*>(&object);
  if (!pod || pod->spec().node_name().empty()) return 0;
  if (pod->status().phase() == "Succeeded" || pod->status().phase() == "Failed") return 0;
  if (options.has_grace_period_seconds()) return options.grace_period_seconds();
  return pod->spec().has_termination_grace_period_seconds() ? pod->spec().termination_grace_period_seconds()
                                                            : 30;
}

// Whether a deleted object can be removed: nothing holds it back.
bool Finished(const Message& object) {
  const metav1::ObjectMeta& meta = api::Meta(object);
  if (!meta.has_deletion_timestamp() || meta.finalizers_size() > 0) return false;
  if (meta.deletion_grace_period_seconds() > 0) return false;
  const auto* ns = dynamic_cast<const corev1::Namespace*>(&object);
  return !ns || ns->spec().finalizers_size() == 0;
}

// A deleted object must not get new finalizers.
Result<> CheckFinalizers(const api::ResourceInfo& info, const metav1::ObjectMeta& sent,
                         const metav1::ObjectMeta& had) {
  if (!had.has_deletion_timestamp()) return {};
  std::string added;
  for (const std::string& one : sent.finalizers()) {
    if (std::find(had.finalizers().begin(), had.finalizers().end(), one) != had.finalizers().end()) continue;
    added += fmt::format("{}\"{}\"", added.empty() ? "" : ", ", one);
  }
  if (added.empty()) return {};
  return About(
      info, had.name(), Code::kInvalid,
      fmt::format("{} \"{}\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added "
                  "if the object is being deleted, found new finalizers []string{{{}}}",
                  info.kind, had.name(), added));
}

// Keeps the fields that only the server sets.
void KeepServerFields(const metav1::ObjectMeta& had, metav1::ObjectMeta& meta) {
  meta.set_uid(had.uid());
  meta.set_resource_version(had.resource_version());
  *meta.mutable_creation_timestamp() = had.creation_timestamp();
  meta.clear_deletion_timestamp();
  meta.clear_deletion_grace_period_seconds();
  meta.clear_generation();
  if (had.has_generation()) meta.set_generation(had.generation());
  if (!had.has_deletion_timestamp()) return;
  *meta.mutable_deletion_timestamp() = had.deletion_timestamp();
  meta.set_deletion_grace_period_seconds(had.deletion_grace_period_seconds());
}

void SetFinalizer(metav1::ObjectMeta& meta, const std::string& finalizer, bool present) {
  auto& list = *meta.mutable_finalizers();
  auto it = std::find(list.begin(), list.end(), finalizer);
  if (present && it == list.end()) meta.add_finalizers(finalizer);
  if (!present && it != list.end()) list.erase(it);
}

}  // namespace

const FakeStore::Objects* FakeStore::Find(const api::ResourceInfo& info) const {
  auto it = objects_.find(info.GroupResource());
  return it == objects_.end() ? nullptr : &it->second;
}

FakeStore::Objects& FakeStore::Of(const api::ResourceInfo& info) { return objects_[info.GroupResource()]; }

Result<FakeStore::Object> FakeStore::Get(const api::ResourceInfo& info, const std::string& key) const {
  if (const Objects* objects = Find(info)) {
    auto it = objects->find(key);
    if (it != objects->end()) return it->second;
  }
  return NotFound(info, api::SplitKey(key).second);
}

std::vector<FakeStore::Object> FakeStore::List(const api::ResourceInfo& info, std::string_view ns) const {
  std::vector<Object> out;
  if (const Objects* objects = Find(info)) {
    for (const auto& [key, object] : *objects) {
      if (ns.empty() || api::Meta(*object).namespace_() == ns) out.push_back(object);
    }
  }
  return out;
}

FakeStore::Object FakeStore::Commit(const api::ResourceInfo& info, Object before,
                                    std::unique_ptr<Message> after) {
  api::MutableMeta(*after).set_resource_version(std::to_string(++version_));
  Object object = std::move(after);
  Of(info)[api::KeyOf(*object)] = object;
  log_.push_back({version_, &info, std::move(before), object});
  return object;
}

FakeStore::Object FakeStore::Remove(const api::ResourceInfo& info, Object before) {
  Of(info).erase(api::KeyOf(*before));
  std::unique_ptr<Message> last = Clone(*before);
  api::MutableMeta(*last).set_resource_version(std::to_string(++version_));
  Object object = std::move(last);
  log_.push_back({version_, &info, object, nullptr});
  return object;
}

FakeStore::Object FakeStore::CommitOrRemove(const api::ResourceInfo& info, Object before,
                                            std::unique_ptr<Message> after) {
  if (Finished(*after)) return Remove(info, std::move(after));
  return Commit(info, std::move(before), std::move(after));
}

Result<FakeStore::Object> FakeStore::Create(const api::ResourceInfo& info, const Message& object) {
  std::unique_ptr<Message> stored = Clone(object);
  metav1::ObjectMeta& meta = api::MutableMeta(*stored);
  if (meta.name().empty() && !meta.generate_name().empty()) {
    meta.set_name(meta.generate_name() + api::RandomSuffix());
  }
  if (meta.name().empty()) return Error(Code::kInvalid, "name or generateName is required");
  if (!meta.resource_version().empty()) {
    return Error(Code::kBadRequest, "resourceVersion should not be set on objects to be created");
  }
  if (Of(info).count(api::KeyOf(*stored))) {
    return About(info, meta.name(), Code::kAlreadyExists,
                 fmt::format("{} \"{}\" already exists", info.GroupResource(), meta.name()));
  }
  meta.set_uid(api::NewUid());
  *meta.mutable_creation_timestamp() = api::ToTime(clock_.Now());
  meta.clear_deletion_timestamp();
  meta.clear_deletion_grace_period_seconds();
  if (HasSpec(*stored)) meta.set_generation(1);
  if (HasStatus(info)) CopyField("status", info.prototype(), *stored);
  if (auto* pod = dynamic_cast<corev1::Pod*>(stored.get())) pod->mutable_status()->set_phase("Pending");
  if (auto* ns = dynamic_cast<corev1::Namespace*>(stored.get())) {
    if (ns->spec().finalizers_size() == 0) ns->mutable_spec()->add_finalizers("kubernetes");
    ns->mutable_status()->set_phase("Active");
  }
  return Commit(info, nullptr, std::move(stored));
}

Result<FakeStore::Object> FakeStore::Update(const api::ResourceInfo& info, std::string_view subresource,
                                            const Message& object) {
  const metav1::ObjectMeta& sent = api::Meta(object);
  KEELSON_ASSIGN_OR_RETURN(Object before, Get(info, api::KeyOf(object)));
  const metav1::ObjectMeta& had = api::Meta(*before);
  if (!sent.resource_version().empty() && sent.resource_version() != had.resource_version()) {
    return Conflict(info, sent.name(), kModified);
  }
  if (!sent.uid().empty() && sent.uid() != had.uid()) {
    return Conflict(info, sent.name(),
                    fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                                sent.uid(), had.uid()));
  }
  KEELSON_RETURN_IF_ERROR(CheckFinalizers(info, sent, had));
  const bool part = subresource == "status" || subresource == "approval";
  std::unique_ptr<Message> after = Clone(part ? *before : object);
  if (part) {
    CopyField("metadata", object, *after);
    CopyField("status", object, *after);
  } else if (HasStatus(info)) {
    CopyField("status", *before, *after);
  }
  metav1::ObjectMeta& meta = api::MutableMeta(*after);
  KeepServerFields(had, meta);
  if (part && info.resource == "pods") *meta.mutable_owner_references() = had.owner_references();
  if (had.has_generation() && !SameSpec(*before, *after)) meta.set_generation(had.generation() + 1);
  if (MessageDifferencer::Equals(*before, *after)) return before;
  return CommitOrRemove(info, before, std::move(after));
}

Result<FakeStore::Object> FakeStore::Delete(const api::ResourceInfo& info, const std::string& key,
                                            const metav1::DeleteOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(Object before, Get(info, key));
  const metav1::ObjectMeta& had = api::Meta(*before);
  const metav1::Preconditions& wanted = options.preconditions();
  if (wanted.has_uid() && wanted.uid() != had.uid()) {
    return Conflict(
        info, had.name(),
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The object "
                    "might have been deleted and then recreated",
                    wanted.uid(), had.uid()));
  }
  if (wanted.has_resource_version() && wanted.resource_version() != had.resource_version()) {
    return Conflict(info, had.name(), kModified);
  }
  std::unique_ptr<Message> after = Clone(*before);
  metav1::ObjectMeta& meta = api::MutableMeta(*after);
  if (options.has_propagation_policy()) {
    SetFinalizer(meta, "orphan", options.propagation_policy() == "Orphan");
    SetFinalizer(meta, "foregroundDeletion", options.propagation_policy() == "Foreground");
  }
  int64_t grace = GraceOf(*before, options);
  if (had.has_deletion_timestamp()) grace = std::min(grace, had.deletion_grace_period_seconds());
  if (!had.has_deletion_timestamp() || grace < had.deletion_grace_period_seconds()) {
    *meta.mutable_deletion_timestamp() = api::ToTime(clock_.Now() + Span(grace));
    meta.set_deletion_grace_period_seconds(grace);
    if (meta.has_generation()) meta.set_generation(meta.generation() + 1);
  }
  if (auto* ns = dynamic_cast<corev1::Namespace*>(after.get())) {
    ns->mutable_status()->set_phase("Terminating");
  }
  if (MessageDifferencer::Equals(*before, *after)) return before;
  return CommitOrRemove(info, before, std::move(after));
}

Result<> FakeStore::Bind(const std::string& pod_key, const corev1::Binding& binding) {
  const api::ResourceInfo& info = api::ResourceOf<corev1::Pod>();
  KEELSON_ASSIGN_OR_RETURN(Object before, Get(info, pod_key));
  std::unique_ptr<Message> after = Clone(*before);
  auto& pod = static_cast<corev1::Pod&>(*after);
  if (pod.metadata().has_deletion_timestamp()) {
    return Conflict(
        info, pod.metadata().name(),
        fmt::format("pod {} is being deleted, cannot be assigned to a host", pod.metadata().name()));
  }
  if (!pod.spec().node_name().empty()) {
    return Conflict(info, pod.metadata().name(),
                    fmt::format("pod {} is already assigned to node \"{}\"", pod.metadata().name(),
                                pod.spec().node_name()));
  }
  pod.mutable_spec()->set_node_name(binding.target().name());
  auto& conditions = *pod.mutable_status()->mutable_conditions();
  auto it = std::find_if(conditions.begin(), conditions.end(),
                         [](const corev1::PodCondition& c) { return c.type() == "PodScheduled"; });
  corev1::PodCondition& scheduled = it == conditions.end() ? *conditions.Add() : *it;
  scheduled.Clear();
  scheduled.set_type("PodScheduled");
  scheduled.set_status("True");
  *scheduled.mutable_last_transition_time() = api::ToTime(clock_.Now());
  Commit(info, before, std::move(after));
  return {};
}

FakeStore::Object FakeStore::Put(const api::ResourceInfo& info, const Message& object) {
  std::unique_ptr<Message> after = Clone(object);
  metav1::ObjectMeta& meta = api::MutableMeta(*after);
  Result<Object> before = Get(info, api::KeyOf(object));
  if (meta.uid().empty()) meta.set_uid(before ? api::Meta(**before).uid() : api::NewUid());
  if (!meta.has_creation_timestamp()) *meta.mutable_creation_timestamp() = api::ToTime(clock_.Now());
  if (HasSpec(*after) && !meta.has_generation()) meta.set_generation(1);
  return Commit(info, before ? *before : nullptr, std::move(after));
}

Result<size_t> FakeStore::Position(uint64_t version) const {
  if (version < compacted_) {
    return Error(Code::kGone, fmt::format("too old resource version: {} ({})", version, compacted_));
  }
  auto it = std::upper_bound(log_.begin(), log_.end(), version,
                             [](uint64_t v, const LogEntry& entry) { return v < entry.version; });
  return log_start_ + static_cast<size_t>(it - log_.begin());
}

void FakeStore::Compact() {
  log_start_ += log_.size();
  log_.clear();
  compacted_ = version_;
}

}  // namespace keelson::client
