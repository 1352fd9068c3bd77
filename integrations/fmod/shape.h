// The shape of FMOD's memory hook, written from its documentation: what integrations/fmod is compiled against here,
// since FMOD cannot be had. A program includes fmod.h instead.
#pragma once

#define F_CALL
typedef enum { FMOD_OK } FMOD_RESULT;
typedef unsigned int FMOD_MEMORY_TYPE;
enum {
  FMOD_MEMORY_NORMAL = 0,
  FMOD_MEMORY_STREAM_FILE = 1,
  FMOD_MEMORY_STREAM_DECODE = 2,
  FMOD_MEMORY_PERSISTENT = 0x200000
};
#define FMOD_MEMORY_ALL 0xFFFFFFFFu
typedef void*(F_CALL* FMOD_MEMORY_ALLOC_CALLBACK)(unsigned int size, FMOD_MEMORY_TYPE type, const char* source);
typedef void*(F_CALL* FMOD_MEMORY_REALLOC_CALLBACK)(void* block, unsigned int size, FMOD_MEMORY_TYPE type,
                                                    const char* source);
typedef void(F_CALL* FMOD_MEMORY_FREE_CALLBACK)(void* block, FMOD_MEMORY_TYPE type, const char* source);
FMOD_RESULT FMOD_Memory_Initialize(void* pool, int bytes, FMOD_MEMORY_ALLOC_CALLBACK, FMOD_MEMORY_REALLOC_CALLBACK,
                                   FMOD_MEMORY_FREE_CALLBACK, FMOD_MEMORY_TYPE types);
