// Internal to lib/k8s/defaulting: maps each message type to the function that sets its defaults.
#pragma once

#include <functional>
#include <unordered_map>

#include <google/protobuf/message.h>

#include "lib/k8s/defaulting/internal.h"

namespace keelson::k8s {

class DefaultTable {
 public:
  using Function = void (*)(google::protobuf::Message&);

  template <typename T, void (*kFunction)(T&)>
  void Add() {
    functions_.emplace(T::descriptor(),
                       [](google::protobuf::Message& object) { kFunction(static_cast<T&>(object)); });
  }
  Function Find(const google::protobuf::Descriptor* descriptor) const {
    auto it = functions_.find(descriptor);
    return it == functions_.end() ? nullptr : it->second;
  }

 private:
  std::unordered_map<const google::protobuf::Descriptor*, Function> functions_;
};

}  // namespace keelson::k8s
