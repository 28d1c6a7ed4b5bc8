// Internal to lib/k8s/validation: the rules of each kind. MetaRules checks metadata for all kinds alike.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <google/protobuf/message.h>

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

template <typename T>
using CreateRule = void (*)(const T& object, FieldErrors& errors);
template <typename T>
using UpdateRule = void (*)(const T& object, const T& old, FieldErrors& errors);

struct KindRules {
  using Message = google::protobuf::Message;
  NameRule name = CheckDns1123Subdomain;
  void (*create)(const Message&, FieldErrors&) = nullptr;
  // Runs in addition to `create`, unless `update_alone`.
  void (*update)(const Message&, const Message&, FieldErrors&) = nullptr;
  void (*status)(const Message&, const Message&, FieldErrors&) = nullptr;
  bool update_alone = false;
  // Updates through other subresources, by name.
  std::vector<std::pair<std::string_view, void (*)(const Message&, const Message&, FieldErrors&)>> parts;
};

class RuleTable {
 public:
  // Adds rules for new objects of kind T. Callers set more rules on the returned reference.
  template <typename T, CreateRule<T> kRule>
  KindRules& Add() {
    KindRules& rules = rules_[T::descriptor()];
    rules.create = [](const google::protobuf::Message& object, FieldErrors& errors) {
      kRule(static_cast<const T&>(object), errors);
    };
    return rules;
  }
  template <typename T, UpdateRule<T> kRule>
  void AddUpdate(bool alone = false) {
    KindRules& rules = rules_[T::descriptor()];
    rules.update = Wrap<T, kRule>();
    rules.update_alone = alone;
  }
  template <typename T, UpdateRule<T> kRule>
  void AddStatus() {
    rules_[T::descriptor()].status = Wrap<T, kRule>();
  }
  template <typename T, UpdateRule<T> kRule>
  void AddPart(std::string_view subresource) {
    rules_[T::descriptor()].parts.emplace_back(subresource, Wrap<T, kRule>());
  }
  const KindRules* Find(const google::protobuf::Descriptor* descriptor) const {
    const auto it = rules_.find(descriptor);
    return it == rules_.end() ? nullptr : &it->second;
  }

 private:
  using Wrapped = void (*)(const google::protobuf::Message&, const google::protobuf::Message&, FieldErrors&);
  template <typename T, UpdateRule<T> kRule>
  static Wrapped Wrap() {
    return
        [](const google::protobuf::Message& object, const google::protobuf::Message& old,
           FieldErrors& errors) { kRule(static_cast<const T&>(object), static_cast<const T&>(old), errors); };
  }
  std::unordered_map<const google::protobuf::Descriptor*, KindRules> rules_;
};

// Applies the rules for a new object. Without rules (null), checks metadata and closed string types only.
FieldErrors ValidateBy(const KindRules* rules, const google::protobuf::Message& object);
// Checks the metadata of an update, of the object or a subresource.
void CheckMetaUpdate(const google::protobuf::Message& object, const google::protobuf::Message& old,
                     FieldErrors& errors);
// Applies only the kind's own rules for a new object.
void CheckOwnRules(const google::protobuf::Message& object, const KindRules* rules, FieldErrors& errors);

}  // namespace keelson::k8s
