// Access to the metadata of any object, and small helpers that every program needs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::api {

// The `metadata` of an object. Every resource kind has it; aborts on a message without.
const metav1::ObjectMeta& Meta(const Message& object);
metav1::ObjectMeta& MutableMeta(Message& object);
bool HasObjectMeta(const Descriptor* descriptor);
// The `metadata` of a list kind.
metav1::ListMeta& MutableListMeta(Message& list);

// "namespace/name", or "name" for cluster-scoped objects: the key in stores and work queues.
std::string KeyOf(const Message& object);
std::string KeyOf(std::string_view ns, std::string_view name);
std::pair<std::string, std::string> SplitKey(std::string_view key);  // {namespace or "", name}

// The owner with controller=true, or null.
const metav1::OwnerReference* ControllerOf(const metav1::ObjectMeta& meta);
metav1::OwnerReference ControllerRef(const Message& owner);  // controller and blockOwnerDeletion set

metav1::Time ToTime(WallTime time);            // whole seconds
metav1::MicroTime ToMicroTime(WallTime time);  // microseconds
WallTime FromTime(const metav1::Time& time);
WallTime FromMicroTime(const metav1::MicroTime& time);
std::string FormatTime(const metav1::Time& time);  // 2026-01-01T00:00:00Z

std::string NewUid();                         // random UUID, RFC 4122 version 4
std::string RandomSuffix(size_t length = 5);  // letters and digits that form no words: names, generateName

// An error as the `Status` that the API server returns; and back.
metav1::Status ToStatus(const Error& error);
Error FromStatus(const metav1::Status& status);

}  // namespace keelson::api
