// How server-side apply sees the objects of a resource.
#pragma once

#include <memory>

#include "lib/api/apply/typed.h"
#include "lib/api/scheme.h"

namespace keelson::registry {

// Of a built-in kind, or as the present definition of a custom resource says; shares what the shape is part of.
std::shared_ptr<const api::Shape> ShapeOfRow(const api::ResourceInfo& info);

}  // namespace keelson::registry
